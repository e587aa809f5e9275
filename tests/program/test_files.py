"""What the program does to files that are there: what it reads, what it writes over, and what it leaves behind."""
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest, matrix_market, parse_array

POSITIVE = [[4, 1, 0], [1, 5, 2], [0, 2, 6]]
NOBODY = 65534


class FileTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not program.has_scalar("f64"):
            self.skipTest("this build leaves f64 out")
        self.text = matrix_market(POSITIVE, "coordinate", "real", "symmetric")
        self.write("A.mtx", self.text)

    def mode(self, name):
        return stat.S_IMODE(os.lstat(self.path(name)).st_mode)

    def assert_generated(self, name):
        self.assertEqual(len(self.read(name).splitlines()), 2 + 9)

    def generate(self, output, **options):
        self.succeed("generate", "arrow:5", "-o", output, **options)


class Inputs(FileTest):
    def test_are_never_written_over(self):
        self.write("b.mtx", matrix_market([[1], [2], [3]], "array", "real", "general"))
        self.write("tuning.txt", "# none\n")
        os.symlink("A.mtx", self.path("link.mtx"))
        os.link(self.path("A.mtx"), self.path("hard.mtx"))
        tuned = dict(os.environ, TRIFACTOR_TUNING=self.path("tuning.txt"))
        for output, read, arguments, environment in [
            ("A.mtx", "A.mtx", ["analyze", "A.mtx", "--picture"], None),
            ("link.mtx", "A.mtx", ["analyze", "A.mtx", "--picture"], None),
            ("hard.mtx", "A.mtx", ["analyze", "A.mtx", "--picture"], None),
            ("A.mtx", "link.mtx", ["solve", "link.mtx", "-o"], None),
            ("b.mtx", "b.mtx", ["solve", "A.mtx", "--rhs", "b.mtx", "-o"], None),
            ("./b.mtx", "b.mtx", ["solve", "A.mtx", "--rhs", "b.mtx", "-o"], None),
            ("tuning.txt", self.path("tuning.txt"), ["generate", "arrow:5", "-o"], tuned),
            ("tuning.txt", self.path("tuning.txt"), ["trace", "cholesky", "--n", "9", "--device", "host", "-o"], tuned),
            ("A.mtx", "A.mtx", ["trace", "sparse", "--matrix", "A.mtx", "--device", "host", "-o"], None),
            ("A.mtx", "A.mtx", ["bench", "sparse", "--matrix", "A.mtx", "--device", "host", "--power"], None),
        ]:
            with self.subTest(arguments=arguments, output=output):
                self.fail_with(2, "%s: the output would overwrite the input %s" % (output, read), *arguments, output,
                               env=environment)
        with open(self.path("A.mtx")) as file:
            self.fail_with(2, "A.mtx: the output would overwrite the input standard input", "solve", "-", "-o", "A.mtx",
                           stdin=file)
        with open(self.path("A.mtx"), "a") as file:
            for command in ["solve", "analyze"]:
                done = subprocess.run([program.PROGRAM, command, "A.mtx"], cwd=self.folder, stdout=file,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("standard output: the output would overwrite the input A.mtx", done.stderr)
        self.assertEqual(self.read("A.mtx"), self.text)
        self.assertEqual(self.read("tuning.txt"), "# none\n")

    def test_no_name_is_refused(self):
        for option, arguments in [("--output", ["solve", "A.mtx", "-o"]), ("--rhs", ["solve", "A.mtx", "--rhs"]),
                                  ("--output", ["generate", "arrow:5", "-o"]), ("--picture", ["analyze", "A.mtx", "--picture"]),
                                  ("--output", ["trace", "lu", "-o"]), ("--power", ["bench", "lu", "--n", "9", "--power"]),
                                  ("--output", ["tune", "--budget", "0.01", "-o"]),
                                  ("--from", ["tune", "--budget", "0.01", "--from"])]:
            with self.subTest(arguments=arguments):
                self.fail_with(2, option + ": the name of the file is empty", *arguments, "",
                               env=dict(os.environ, XDG_CONFIG_HOME=self.path("config")))
        self.assertEqual(self.files(), ["A.mtx"])

    def test_memory_that_is_not_there_is_refused_before_it_is_taken(self):
        memory = program.info()["devices"][0]["memory_bytes"]  # never less than is available
        n = memory // 100
        if n > 2**31 - 2:
            self.skipTest("no index counts as many rows as this memory holds")
        banner = "%%MatrixMarket matrix coordinate real symmetric\n"
        self.write("A.mtx", banner + "%d %d 0\n" % (n, n))
        done = self.fail_with(3, "A.mtx:2: reading and analysing this %d x %d matrix takes" % (n, n), "analyze", "A.mtx")
        size, unit = re.search(r"takes (\d+\.\d) (.)iB of memory, but", done.stderr).groups()
        told = float(size) * {"M": 2**20, "G": 2**30, "T": 2**40}[unit] / n
        if program.has_address_sanitizer():
            return
        rows = 400000                                    # what it says is what it takes
        self.write("A.mtx", banner + "%d %d 0\n" % (rows, rows))
        # After free(), arrays of this size may stay in malloc's arenas: how many depends on the order of threads. With
        # a fixed threshold all are returned to the system, as those above 32 MiB always are.
        returning = dict(os.environ, MALLOC_MMAP_THRESHOLD_="131072")
        used = []
        for name in ["arrow:1", "A.mtx"]:
            child = subprocess.Popen([program.PROGRAM, "analyze", name], cwd=self.folder, stdout=subprocess.DEVNULL,
                                     env=returning)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = status
            self.assertEqual(status, 0)
            used.append(usage.ru_maxrss * 1024)
        taken = (used[1] - used[0]) / rows
        self.assertLess(taken, 1.1 * told)
        self.assertGreater(taken, 0.5 * told)  # 0.57 with sixteen threads


class Existing(FileTest):
    """An output that is there already."""

    def test_keeps_its_mode(self):
        for mode in [0o600, 0o640, 0o666, 0o755]:
            self.write("x.mtx", "older")
            os.chmod(self.path("x.mtx"), mode)
            self.generate("x.mtx")
            self.assertEqual(self.mode("x.mtx"), mode)
            self.assert_generated("x.mtx")
        os.remove(self.path("x.mtx"))
        self.generate("x.mtx", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(self.mode("x.mtx"), 0o640)

    def test_keeps_its_owner(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        self.write("x.mtx", "older")
        os.chown(self.path("x.mtx"), NOBODY, NOBODY)
        self.generate("x.mtx")
        status = os.stat(self.path("x.mtx"))
        self.assertEqual((status.st_uid, status.st_gid), (NOBODY, NOBODY))

    def test_that_is_read_only_is_refused(self):
        self.write("x.mtx", "older")
        os.chmod(self.path("x.mtx"), 0o444)
        for arguments in [["generate", "arrow:5", "-o"], ["solve", "A.mtx", "-o"], ["analyze", "A.mtx", "--picture"],
                          ["trace", "cholesky", "--n", "9", "--device", "host", "-o"]]:
            self.fail_with(2, "x.mtx: cannot be written: ", *arguments, "x.mtx")
        self.assertEqual((self.read("x.mtx"), self.mode("x.mtx")), ("older", 0o444))

    def test_that_the_user_may_not_write_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to have a file of someone else")
        os.chmod(self.folder, 0o777)
        self.write("x.mtx", "older")
        os.chmod(self.path("x.mtx"), 0o644)
        try:
            self.run_here("--version", user=NOBODY)
        except PermissionError:
            self.skipTest("the program is in a folder that others may not see")
        self.fail_with(2, "x.mtx: cannot be written: Permission denied", "generate", "arrow:5", "-o", "x.mtx", user=NOBODY)
        self.assertEqual(self.read("x.mtx"), "older")
        os.chmod(self.path("x.mtx"), 0o666)             # written in place: its owner stays
        self.generate("x.mtx", user=NOBODY)
        self.assert_generated("x.mtx")
        self.assertEqual(os.stat(self.path("x.mtx")).st_uid, 0)
        os.chmod(self.folder, 0o755)                    # no other file can be made beside it
        self.succeed("generate", "arrow:7", "-o", "x.mtx", user=NOBODY)
        self.assertEqual(len(self.read("x.mtx").splitlines()), 2 + 13)
        self.fail_with(2, "y.mtx: cannot be written: Permission denied", "generate", "arrow:5", "-o", "y.mtx", user=NOBODY)
        self.assertEqual(self.files(), ["A.mtx", "x.mtx"])

    def test_keeps_its_hard_links(self):
        for older in ["older", "older\n" * 1000]:       # shorter and longer than what comes
            self.write("x.mtx", older)
            os.link(self.path("x.mtx"), self.path("y.mtx"))
            self.generate("x.mtx")
            self.assertTrue(os.path.samefile(self.path("x.mtx"), self.path("y.mtx")))
            self.assert_generated("y.mtx")
            os.remove(self.path("y.mtx"))
        self.assertEqual(self.files(), ["A.mtx", "x.mtx"])

    def test_with_hard_links_stays_whole_when_writing_fails(self):
        self.write("x.mtx", "older")
        os.link(self.path("x.mtx"), self.path("y.mtx"))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        self.fail_with(3, "x.mtx: writing failed: File too large", "generate", "poisson2d:50", "-o", "x.mtx",
                       preexec_fn=limit, restore_signals=False)
        self.assertEqual(self.read("y.mtx"), "older")
        self.assertEqual(self.files(), ["A.mtx", "x.mtx", "y.mtx"])

    def test_symbolic_links_stay(self):
        os.mkdir(self.path("real"))
        os.symlink("real/x.mtx", self.path("second"))
        os.symlink(self.path("second"), self.path("first"))
        for _ in range(2):                              # a link to nothing, then to a file
            self.generate("first")
            self.assertTrue(os.path.islink(self.path("first")) and os.path.islink(self.path("second")))
            self.assert_generated("real/x.mtx")
        os.symlink("nowhere/x.mtx", self.path("broken"))
        os.symlink("circle", self.path("circle"))
        self.fail_with(2, "broken: cannot be written: it is a link to nowhere/x.mtx: No such file or directory",
                       "generate", "arrow:5", "-o", "broken")
        self.fail_with(2, "circle: cannot be written: Too many levels of symbolic links", "generate", "arrow:5", "-o",
                       "circle")

    def test_pipes_and_devices_stay(self):
        self.generate("/dev/null")
        read, write = os.pipe()
        done = self.run_here("generate", "arrow:5", "-o", "/dev/fd/%d" % write, pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as file:
            self.assertEqual(len(file.read().splitlines()), 11, done.stderr)

    def test_a_long_name(self):
        self.generate("x" * 255)
        self.assert_generated("x" * 255)
        self.assertEqual(self.files(), ["A.mtx", "x" * 255])


class Signals(FileTest):
    def test_a_limit_of_the_file_size(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = self.run_here("generate", "poisson2d:50", "-o", "x.mtx", preexec_fn=limit)
        self.assertEqual(done.returncode, -signal.SIGXFSZ)
        self.assertEqual(self.files(), ["A.mtx"])

    def stopped_while_writing(self, handler):
        """A child that was stopped while it had a partial file. Writing takes long enough to be met at the first try."""
        for size in [60, 80, 100, 120]:
            child = subprocess.Popen([program.PROGRAM, "generate", "poisson3d:%d" % size, "-o", "x.mtx"], cwd=self.folder,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=handler)
            self.addCleanup(child.stderr.close)
            while child.poll() is None:
                if any(name.endswith(".partial") for name in self.files()):
                    child.send_signal(signal.SIGSTOP)
                    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                    if any(name.endswith(".partial") for name in self.files()):
                        return child
                    break
                time.sleep(0.001)
            child.kill()
            child.wait()
        self.fail("the partial file was never seen")

    def test_remove_what_is_partial(self):
        self.write("x.mtx", "older")
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            with self.subTest(number=number):
                child = self.stopped_while_writing(None)
                child.send_signal(number)
                child.send_signal(signal.SIGCONT)
                self.assertEqual(child.wait(), -number)
                self.assertEqual(self.files(), ["A.mtx", "x.mtx"])
                self.assertEqual(self.read("x.mtx"), "older")

    def test_that_are_ignored_stay_ignored(self):
        child = self.stopped_while_writing(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.wait(), 0)
        self.assertEqual(self.files(), ["A.mtx", "x.mtx"])


class Names(FileTest):
    def test_that_are_not_utf8_leave_json_whole(self):
        name = os.fsdecode(b"\xff\xfe.mtx")
        self.generate(name)
        (solved,) = self.succeed_json("solve", name, "-o", os.fsdecode(b"x\xff.mtx"))
        self.assertEqual((solved["matrix"], solved["output"]), ("\ufffd\ufffd.mtx", "x\ufffd.mtx"))
        (plan,) = self.succeed_json("analyze", name)
        self.assertEqual(plan["matrix"], "\ufffd\ufffd.mtx")
        (generated,) = self.succeed_json("generate", "arrow:5", "-o", name)
        self.assertEqual(generated["file"], "\ufffd\ufffd.mtx")
        (traced,) = self.succeed_json("trace", "cholesky", "--n", "9", "--device", "host", "-o", name)
        self.assertEqual(traced["file"], "\ufffd\ufffd.mtx")

    def test_are_shown_escaped(self):
        for name, shown in [(b"a\nb\x1b[31m.mtx", r"a\x0ab\x1b[31m.mtx"), (b"\xff\xc2\x9b.mtx", r"\xff\xc2\x9b.mtx"),
                            ("größe €.mtx".encode(), "größe €.mtx")]:
            path = os.fsdecode(name)
            self.fail_with(2, "trifactor: %s: No such file" % shown, "solve", path)
            self.assertIn("written to %s in" % shown, self.succeed("generate", "arrow:5", "-o", path))
            self.assertIn("matrix    %s: 5 x 5" % shown, self.succeed("solve", path))
            self.assertIn("matrix    %s: 5 x 5" % shown, self.succeed("analyze", path, "--picture", "tree.svg"))
            self.assertIn(shown, self.read("tree.svg"))
            self.write(path, "%%MatrixMarket matrix\n")
            self.fail_with(2, "trifactor: %s:1: the banner's format is missing" % shown, "analyze", path)
            self.fail_with(2, "trifactor: no/%s: cannot be written" % shown, "solve", "A.mtx", "-o", "no/" + path)
            self.write(path, matrix_market([[1, 0], [0, 1e-20]], "array", "real", "general"))
            self.assertIn("warning: %s: A is singular to" % shown, self.run_here("solve", path).stderr)
            os.remove(self.path(path))
        done = self.fail_with(2, r"\x1b[31m", "solve", "A.mtx", "\x1b[31m")
        self.assertNotIn("\x1b", done.stderr)


if __name__ == "__main__":
    program.main()
