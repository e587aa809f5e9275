"""trifactor info, trifactor demo, and the command line itself."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest


class Info(ProgramTest):
    def test_json(self):
        (info,) = self.succeed_json("info")
        self.assertEqual(" ".join(info),
                         "version commit scalars blas devices why_no_cuda energy_sensors tuning_file tuning")
        host = info["devices"][0]
        self.assertIsNone(host["number"])
        self.assertGreater(host["memory_bytes"], 2 ** 28)
        self.assertGreater(host["cores"], 0)
        self.assertTrue(host["name"] and host["architecture"] and info["blas"] and info["version"] and info["commit"])
        self.assertTrue(set(info["scalars"]) <= {"f32", "f64", "c32", "c64"} and info["scalars"])
        self.assertEqual(info["why_no_cuda"] is None, len(info["devices"]) > 1)
        for row in info["tuning"]:
            self.assertRegex(row["row"], r"^\w+ \w+ \w+ .*:")
            self.assertRegex(row["source"], r"^tuning/\w+\.txt:\d+$")

    def test_text_says_the_same(self):
        info, text = program.info(), self.succeed("info")
        for part in [info["version"], info["commit"], info["blas"], info["devices"][0]["name"],
                     info["devices"][0]["architecture"], " ".join(info["scalars"])]:
            self.assertIn(part, text)
        for row in info["tuning"]:
            self.assertRegex(text, "(?m)^" + re.escape(row["source"]) + " +" + re.escape(row["row"]) + "$")
        if info["why_no_cuda"]:
            self.assertIn(info["why_no_cuda"], text)

    def test_the_table_of_devices_is_aligned_and_has_units_in_its_heading(self):
        table = re.search(r"(?m)^device .*\n(?:.+\n)+", self.succeed("info")).group().splitlines()
        self.assertEqual(len(table), 1 + len(program.info()["devices"]))
        self.assertEqual(program.misaligned(table), [])
        self.assertRegex(table[0], r"  memory GiB  +free GiB  ")
        self.assertRegex(table[1], r"^host +\S+ +\d+ +\d+\.\d +\d+\.\d  ")

    def test_a_missing_gpu_is_told_in_the_users_words(self):
        why = program.info()["why_no_cuda"]
        if why is None:
            self.skipTest("there is a GPU")
        self.assertRegex(why, "NVIDIA (GPU|driver)|^trifactor was built without CUDA$")
        self.assertNotRegex(why, "cudaError|insufficient")

    def test_a_tuning_file_comes_first_and_is_named(self):
        self.write("mine.txt", "# mine\nhost cholesky any n<=10 : nb=4   # a guess\n")
        environment = dict(os.environ, TRIFACTOR_TUNING=self.path("mine.txt"))
        info = json.loads(self.succeed("info", "--json", env=environment))
        self.assertEqual(info["tuning"][0]["source"], self.path("mine.txt") + ":2")
        self.assertIn("nb=4", info["tuning"][0]["row"])


class Demo(ProgramTest):
    SYSTEMS = ["SPD system", "general system", "batch of SPD systems", "sparse SPD system"]

    def check_table(self, text, *devices):
        heading, *rows = [line for line in text.splitlines() if re.match(r"what|.* \d+ x \d", line)]
        titles = ["what", "size", "scalar", "device", "ms", "Gflop/s", "times the CPU", "residual ratio", "joules"]
        if len(devices) == 1:
            titles.remove("times the CPU")
        self.assertEqual(re.split(r"  +", heading), titles)
        self.assertEqual(len({len(line) for line in [heading] + rows}), 1, "not aligned:\n" + text)
        cells = [dict(zip(titles, re.split(r"  +", row), strict=True)) for row in rows]
        self.assertEqual([(row["what"].split(",")[0], row["device"]) for row in cells],
                         [(system, device) for system in self.SYSTEMS for device in devices])
        for row in cells:
            self.assertEqual(row["size"].startswith("10000 of "), row["what"].startswith("batch"))
            self.assertGreater(float(row["ms"]), 0)
            self.assertGreater(float(row["Gflop/s"]), 0)
            self.assertLess(float(row["residual ratio"]), 30)
            self.assertTrue(row["joules"] == "-" or float(row["joules"]) > 0)
            if row["device"] == "host" and len(devices) > 1:
                self.assertEqual(float(row["times the CPU"]), 1)
        self.assertRegex(text, r"The sparse system is that of 'trifactor generate elastic3d:\d+'")
        return cells

    def test_what_is_there_side_by_side(self):
        text = self.succeed("demo")
        if program.has_gpu():
            self.assertNotIn("Only the CPU", text)
            cells = self.check_table(text, "host", "cuda")
            for cpu, gpu in zip(cells[::2], cells[1::2]):
                ratio = float(cpu["ms"]) / float(gpu["ms"])
                self.assertLess(abs(float(gpu["times the CPU"]) - ratio), 0.06 + 0.02 * ratio)   # as far as both are printed
        else:
            self.assertIn("\nOnly the CPU is used: %s.\n" % program.info()["why_no_cuda"], text)
            self.check_table(text, "host")

    def test_on_the_cpu_alone(self):
        if not program.has_gpu():
            self.skipTest("no GPU: that is what the test above does")
        text = self.succeed("demo", "--device", "host")
        self.assertNotIn("GPU", text)
        self.check_table(text, "host")

    def test_on_the_gpu_alone(self):
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "demo", "--device", "cuda")
            self.skipTest("no GPU")
        self.check_table(self.succeed("demo", "--device", "cuda"), "cuda")


class CommandLine(ProgramTest):
    def test_starts_without_the_libraries_of_cuda(self):
        """cuBLAS and cuSOLVER are loaded when a GPU is first used: they take 200 MB."""
        needed = subprocess.run(["ldd", program.PROGRAM], capture_output=True, text=True, check=True).stdout
        self.assertIn("libtrifactor", needed)
        self.assertNotRegex(needed, "libcublas|libcusolver")

    def test_version(self):
        info = program.info()
        self.assertEqual(self.succeed("--version"), "trifactor %s (%s)\n" % (info["version"], info["commit"]))

    def test_help(self):
        for arguments in [[], ["info"], ["solve"], ["bench"], ["demo"]]:
            self.assertRegex(self.succeed(*arguments, "--help"), r"(?s)Usage: .*Options:")
        self.assertIn("Exit status", self.succeed("--help"))

    def test_bad_usage_is_status_2(self):
        for arguments in [[], ["unknown"], ["--unknown"], ["info", "extra"], ["info", "--wrong"], ["solve"],
                          ["solve", "A.mtx", "--method", "qr"], ["solve", "A.mtx", "--device", "tpu"],
                          ["solve", "A.mtx", "b.mtx"], ["solve", "A.mtx", "-o"], ["demo", "--device", "tpu"]]:
            with self.subTest(arguments=arguments):
                done = self.fail_with(2, "", *arguments)
                self.assertRegex(done.stderr, r"\nRun trifactor (info |solve |demo )?--help for the usage\.\n$")
                self.assertEqual(done.stdout, "")

    def test_misspelt_words_get_a_suggestion(self):
        for message, arguments in [
            ("has no command 'slove'; did you mean solve?", ["slove", "A.mtx", "--rhs", "b.mtx"]),
            ("did you mean generate?", ["genrate"]), ("did you mean analyze?", ["analyse", "A.mtx"]),
            ("did you mean analyze?", ["an"]),
            ("solve has no option --rsh; did you mean --rhs?", ["solve", "A.mtx", "--rsh", "b.mtx"]),
            ("solve has no option --rsh; did you mean --rhs?", ["solve", "A.mtx", "--rsh=b.mtx"]),
            ("solve has no option --out; did you mean --output?", ["solve", "A.mtx", "--out", "x.mtx"]),
            ("did you mean --version?", ["--vesrion"]),
            ("bench has no operation 'choleksy'; did you mean cholesky?", ["bench", "choleksy"]),
            ("bench lu has no option --secodns; did you mean --seconds?", ["bench", "lu", "--secodns", "1"]),
            ("trifactor has no option --json: it comes after the command", ["--json", "info"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.fail_with(2, message, *arguments).stdout, "")

    def test_a_word_that_is_near_to_none_gets_the_list(self):
        for arguments in [["x"], ["help"], ["decompose"], ["s" * 100000]]:
            done = self.fail_with(2, "there are info, solve, bench, ", *arguments)
            self.assertNotIn("did you mean", done.stderr)
        self.assertNotIn("did you mean", self.fail_with(2, "", "solve", "A.mtx", "--quite-other").stderr)


if __name__ == "__main__":
    program.main()
