"""trifactor info, trifactor demo, and the command line itself."""
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest


class Info(ProgramTest):
    def test_json(self):
        (info,) = self.succeed_json("info")
        self.assertEqual(" ".join(info), "version commit scalars blas devices why_no_cuda energy_sensors tuning")
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
    def check_table(self, text, device):
        heading, *rows = [line for line in text.splitlines() if re.match(r"what|.* x \d", line)]
        titles = ["what", "size", "scalar", "device", "ms", "Gflop/s", "residual ratio", "joules"]
        self.assertEqual(re.split(r"  +", heading), titles)
        cells = [re.split(r"  +", row) for row in rows]
        self.assertEqual([len(row) for row in cells], [8, 8, 8], text)
        self.assertEqual(len({len(line) for line in [heading] + rows}), 1, "not aligned:\n" + text)
        what = [row[0].split(",")[0] for row in cells]
        self.assertEqual(what, ["SPD system", "general system", "batch of SPD systems"])
        self.assertRegex(cells[2][1], "^10000 of ")
        for row in cells:
            self.assertEqual(row[3], device)
            self.assertGreater(float(row[4]), 0)
            self.assertGreater(float(row[5]), 0)
            self.assertLess(float(row[6]), 30)
            self.assertTrue(row[7] == "-" or float(row[7]) > 0)

    def test_factors_and_solves_three_things_on_the_host(self):
        begin = time.monotonic()
        text = self.succeed("demo")
        if not program.has_address_sanitizer():
            self.assertLess(time.monotonic() - begin, 60)
        self.check_table(text, "host")
        self.assertEqual("trifactor demo --device cuda" in text, program.has_gpu())

    def test_on_the_gpu(self):
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "demo", "--device", "cuda")
            self.skipTest("no GPU")
        self.check_table(self.succeed("demo", "--device", "cuda"), "cuda")


class CommandLine(ProgramTest):
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
