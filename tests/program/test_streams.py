"""What the program reads and prints: standard streams, compressed files, inputs without an end or cut short."""
import bz2
import gzip
import json
import lzma
import os
import signal
import resource
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest, matrix_market, parse_array
from test_malformed import MALFORMED

POSITIVE = [[4, 1, 0], [1, 5, 2], [0, 2, 6]]
BANNER = "%%MatrixMarket matrix coordinate real symmetric\n"
HOST = ["--device", "host"]


class StreamTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not program.has_scalar("f64"):
            self.skipTest("this build leaves f64 out")
        self.write("A.mtx", matrix_market(POSITIVE, "coordinate", "real", "symmetric"))

    def commands(self):
        """One of each kind, with nothing else to complain about."""
        bench = ["--n", "8", "--seconds", "0.01", "--against", "none"]
        return [["--version"], ["--help"], ["solve", "--help"], ["info"], ["info", "--json"], ["demo"],
                ["solve", "A.mtx"] + HOST, ["solve", "A.mtx", "--json"] + HOST, ["analyze", "A.mtx"],
                ["analyze", "A.mtx", "--json"], ["generate", "arrow:5", "-o", "g.mtx"],
                ["generate", "arrow:5", "-o", "g.mtx", "--json"], ["bench", "cholesky"] + bench + HOST,
                ["bench", "cholesky", "--json"] + bench + HOST, ["trace", "cholesky", "--n", "9"] + HOST,
                ["trace", "cholesky", "--n", "9", "--json"] + HOST]

    def with_output(self, arguments, **options):
        return subprocess.run([program.PROGRAM] + arguments, stderr=subprocess.PIPE, text=True, timeout=300,
                              cwd=self.folder, **options)


class StandardOutput(StreamTest):
    def test_a_report_that_is_lost_is_status_3(self):
        for arguments in self.commands():
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = self.with_output(arguments, stdout=full)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr, "^trifactor: standard output: writing failed: No space left on device\n$")

    def test_a_closed_output_is_status_3(self):
        for arguments in self.commands():
            with self.subTest(arguments=arguments):
                done = self.with_output(arguments, preexec_fn=lambda: os.close(1))
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr, "^trifactor: standard output: writing failed: Bad file descriptor\n$")
        self.assertEqual(len(self.read("g.mtx").splitlines()), 11)      # no report among the entries

    def test_closed_streams_do_not_become_files(self):
        done = self.with_output(["solve", "A.mtx", "-o", "x.mtx"], stdout=subprocess.DEVNULL,
                                preexec_fn=lambda: (os.close(0), os.close(2)))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(parse_array(self.read("x.mtx"))), 3)
        done = self.with_output(["solve", "-"], stdout=subprocess.DEVNULL, preexec_fn=lambda: os.close(0))
        self.assertEqual((done.returncode, done.stderr), (2, "trifactor: standard input: Bad file descriptor\n"))

    def test_a_failure_keeps_its_own_status(self):
        self.write("A.mtx", BANNER + "1 1 1\n1 1 0\n")
        with open("/dev/full", "w") as full:
            self.assertEqual(self.with_output(["solve", "A.mtx"] + HOST, stdout=full).returncode, 1)
            self.assertEqual(self.with_output(["solve", "no.mtx"], stdout=full).returncode, 2)

    def test_a_reader_that_went_away(self):
        for ignored in [False, True]:                 # Python ignores SIGPIPE
            read, write = os.pipe()
            os.close(read)
            done = self.with_output(["info"], stdout=write, restore_signals=not ignored)
            os.close(write)
            if ignored:
                self.assertEqual(done.returncode, 3)
                self.assertIn("standard output: writing failed: Broken pipe", done.stderr)
            else:
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))


class Dash(StreamTest):
    def feed(self, data, *arguments):
        return subprocess.run([program.PROGRAM] + list(arguments), cwd=self.folder, input=data, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_standard_input(self):
        with open(self.path("A.mtx"), "rb") as file:
            text = file.read()
        for data in [text, gzip.compress(text)]:
            for arguments in [["solve", "-"], ["solve", "-", "--method", "lu"], ["analyze", "-"],
                              ["solve", "A.mtx", "--rhs", "-"]]:
                done = self.feed(data, *arguments)
                self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
                self.assertIn(b"standard input: 3 x 3", done.stdout)
        with open(self.path("A.mtx")) as file:
            self.succeed("solve", "-", stdin=file)

    def test_a_stream_is_read_again_where_the_sparse_solver_objects(self):
        n = 1100
        text = BANNER + "%d %d %d\n" % (n, n, n) + "".join("%d %d %d\n" % (i, i, 5 - i) for i in range(1, n + 1))
        text = text.replace("\n5 5 0\n", "\n5 5 7\n")
        done = self.feed(text.encode(), "solve", "-", "--json", "--device", "host")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(done.stdout)["error"], 1e-10)

    def test_a_stream_is_read_again_for_every_scalar(self):
        if not program.has_scalar("f32"):
            self.skipTest("this build leaves f32 out")
        done = self.feed(BANNER.encode() + b"2 2 2\n1 1 4\n2 2 4\n", "bench", "sparse", "--matrix", "-", "--scalar",
                         "f64,f32", "--seconds", "0.01", "--against", "none", "--json", "--device", "host")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)["scalar"] for line in done.stdout.splitlines()], 5 * ["f64"] + 5 * ["f32"])

    def test_only_one_file_is_standard_input(self):
        self.fail_with(2, "standard input (-) can be only one of the files", "solve", "-", "--rhs", "-")

    def test_standard_output_is_all_data(self):
        for path in ["-", "/dev/stdout"]:
            done = self.run_here("solve", "A.mtx", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(parse_array(done.stdout)), 3)
            self.assertRegex(done.stderr, r"(?m)^residual ")
        done = self.run_here("solve", "A.mtx", "-o", "-", "--json")
        self.assertEqual(json.loads(done.stderr)["output"], "-")
        done = self.run_here("generate", "arrow:4", "-o", "-")
        self.assertEqual(len(done.stdout.splitlines()), 9)
        self.assertIn("arrow:4: 4 x 4", done.stderr)
        done = self.run_here("trace", "cholesky", "--n", "9", "-o", "-", "--device", "host")
        self.assertIn("traceEvents", json.loads(done.stdout))
        done = self.run_here("analyze", "A.mtx", "--picture", "-")
        self.assertTrue(done.stdout.startswith("<svg") and done.stdout.rstrip().endswith("</svg>"), done.stdout)
        self.assertIn("nonzeros in L", done.stderr)
        self.assertEqual(self.files(), ["A.mtx"])

    def test_standard_output_that_is_a_file(self):
        for path in ["-", "/dev/stdout"]:
            with open(self.path("x.mtx"), "w") as file:
                done = self.with_output(["solve", "A.mtx", "-o", path], stdout=file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(parse_array(self.read("x.mtx"))), 3)
        with open("/dev/full", "w") as full:
            done = self.with_output(["solve", "A.mtx", "-o", "-"], stdout=full)
            self.assertEqual(done.returncode, 3)
            self.assertIn("standard output: writing failed", done.stderr)


class Compressed(StreamTest):
    def setUp(self):
        super().setUp()
        self.text = self.read("A.mtx").encode()

    def test_gzip(self):
        half = self.text.index(b"\n") + 1
        for data in [gzip.compress(self.text), gzip.compress(self.text[:half]) + gzip.compress(self.text[half:]),
                     gzip.compress(self.text) + bytes(512), gzip.compress(b"") + gzip.compress(self.text)]:
            self.write("A.mtx.gz", data)
            self.assertLess(self.succeed_json("solve", "A.mtx.gz")[0]["error"], 1e-12)
        self.succeed("solve", "A.mtx.gz", "--rhs", "A.mtx.gz")
        (plan,) = self.succeed_json("analyze", "A.mtx.gz")
        self.assertEqual(plan["entries"], 5)

    def test_what_is_malformed_inside_is_told_with_its_line(self):
        if not program.has_scalar("c64"):
            self.skipTest("this build leaves c64 out")
        for text, line, rule in MALFORMED:
            if "3000000000 3000000000" in str(text):        # how long the text is cannot be known beforehand
                continue
            with self.subTest(text=text):
                data = text if isinstance(text, bytes) else text.encode()
                self.write("A.gz", gzip.compress(data))
                done = self.fail_with(2, rule, "solve", "A.gz")
                self.assertTrue(done.stderr.startswith("trifactor: A.gz:%d: " % line), done.stderr)

    def test_what_is_broken(self):
        packed = gzip.compress(self.text)
        flipped = lambda at: packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1:]
        for data, message in [(packed[:-1], "the gzip data ends too early"), (packed[:30], "the gzip data ends too early"),
                              (packed[:4], "the gzip data ends too early"),
                              (flipped(2), "the gzip data is corrupted: unknown compression method"),
                              (flipped(-8 + len(packed)), "the gzip data is corrupted: incorrect data check"),
                              (flipped(-1 + len(packed)), "the gzip data is corrupted: incorrect length check"),
                              (packed + b"more", "something else follows the gzip data")]:
            with self.subTest(data=data):
                self.write("A.gz", data)
                self.fail_with(2, "A.gz: " + message, "solve", "A.gz", "-o", "x.mtx")
                self.assertNotIn("x.mtx", self.files())

    def test_other_formats_are_named(self):
        for name, data in [("bzip2", bz2.compress(self.text)), ("xz", lzma.compress(self.text)),
                           ("zstd", b"\x28\xb5\x2f\xfd\x04\x00"), ("zip", b"PK\x03\x04\x14\x00")]:
            self.write("A.mtx", data)
            self.fail_with(2, "A.mtx: is compressed by %s; only gzip is unpacked here" % name, "solve", "A.mtx")


class Endless(StreamTest):
    """Each ends with a message and little memory."""

    def limits(self):
        if program.has_address_sanitizer():
            return {}
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))}

    def refused(self, message, line, *arguments):
        """line is repeated on standard input for ever, the way that yes does."""
        read, write = os.pipe()

        def repeat():
            try:
                while True:
                    os.write(write, line * (65536 // len(line)))
            except BrokenPipeError:
                os.close(write)

        writer = threading.Thread(target=repeat)
        writer.start()
        try:
            self.fail_with(2, message, *arguments, stdin=read, **self.limits())
        finally:
            os.close(read)
            writer.join()

    def test_devices(self):
        for name in ["/dev/zero", "/dev/urandom"]:
            self.fail_with(2, name + ":1: a Matrix Market file starts with", "solve", name, **self.limits())
        self.fail_with(2, "b.mtx", "solve", "A.mtx", "--rhs", "b.mtx")

    def test_pipes(self):
        self.refused("standard input:1: a Matrix Market file starts with", b"y\n", "analyze", "-")
        banner = b"%%MatrixMarket matrix array real general\n"
        self.refused(": the text goes on beyond 64.0 MiB", banner, "solve", "-")
        self.refused("standard input:1: this line is longer than 1.0 MiB", banner.strip() + b" ", "solve", "-")

    def test_a_line(self):
        for text, line in [(BANNER + "2 2 2\n1 1 " + " " * 2**20 + "1\n2 2 1\n", 3),
                           (BANNER + "1 1 1\n1 1 1\n%" + "x" * 2**20, 4), (BANNER.strip() + " " * 2**20, 1)]:
            self.write("A.mtx", text)
            self.fail_with(2, "A.mtx:%d: this line is longer than 1.0 MiB" % line, "solve", "A.mtx")
        self.write("A.mtx", BANNER + "%" + "x" * 500000 + "\n1 1 1\n%" + "x" * 1000000 + "\n1 1 4\n")
        self.succeed("solve", "A.mtx")

    def test_what_gzip_blows_up(self):
        self.write("A.gz", gzip.compress(BANNER.encode() + b"1 1 1\n" + (b" " * 1023 + b"\n") * 2**16 + b"%" * 9000, 1))
        self.fail_with(2, ": the text goes on beyond 64.0 MiB", "analyze", "A.gz", **self.limits())


class Cut(StreamTest):
    def test_a_file_that_is_cut_while_it_is_read(self):
        n = 200000
        lines = ["%d %d 2\n" % (i, i) for i in range(1, n + 1)]
        head = BANNER + "%d %d %d\n" % (n, n, n) + "".join(lines[:9])
        self.write("A.mtx", head + "".join(lines[9:]))
        os.mkfifo(self.path("b.mtx"))
        child = subprocess.Popen([program.PROGRAM, "solve", "A.mtx", "--rhs", "b.mtx"], cwd=self.folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(self.path("b.mtx"), "w") as rhs:      # opens when A has been opened
            os.truncate(self.path("A.mtx"), len(head))
            rhs.write("%%%%MatrixMarket matrix array real general\n%d 1\n" % n)
        _, errors = child.communicate(timeout=300)
        self.assertEqual(child.returncode, 2, errors)
        self.assertRegex(errors, "^trifactor: A.mtx:11: the file ends after 9 of 200000 entries\n$")


if __name__ == "__main__":
    program.main()
