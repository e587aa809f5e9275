"""trifactor tune: what it finds, what it writes, and where the library finds that."""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

BAD = "host lu any : whole=0 nb=1 leaf=1   # bad on purpose\n"
KEYS = """op operation scalar n count conditions machine before_seconds seconds gain spread candidates runs changed row
          file commit""".split()


class TuneTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("bad.txt", BAD)
        self.device = program.info()["devices"][0]["name"]
        self.section = "[trifactor %s on %s]" % (program.info()["version"], self.device)
        scalars = program.info()["scalars"]
        self.scalar = "f64" if "f64" in scalars else scalars[0]

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if name != "TRIFACTOR_TUNING"}
        # One thread: those of a team wait for each other, and tests run side by side.
        return dict(kept, XDG_CONFIG_HOME=self.path("config"), OMP_NUM_THREADS="1", **more)

    def run_tune(self, *arguments, budget="1s", orders="64"):
        done = self.run_here("tune", "--device", "host", "--ops", "lu", "--n", orders, "--budget", budget, "--scalar",
                             self.scalar, "--from", "bad.txt", *arguments, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def tune(self, *arguments, **options):
        """A run in which the last row gained: other work on the machine may make a spread that hides the gain."""
        for _ in range(8):
            done = self.run_tune(*arguments, **options)
            report = done.stdout + done.stderr
            if re.search(r'"row":"[^\n]*\n$| rows gained and are in ', report):
                return done
        self.fail("nothing gained in eight runs: " + report)

    def info(self, **more):
        return json.loads(self.succeed("info", "--json", env=self.environment(**more)))


class Found(TuneTest):
    def test_rows_have_evidence_and_are_in_force(self):
        decisions = [json.loads(line) for line in
                     self.tune("-o", "found.txt", "--json", orders="24,64").stdout.splitlines()]
        self.assertEqual([(d["n"], d["conditions"]) for d in decisions],
                         [(24, "count=1 n<=39"), (64, "count=1 n>39 n<=128")])
        for d in decisions:
            self.assertEqual(list(d), KEYS)
            self.assertAlmostEqual(d["gain"], d["before_seconds"] / d["seconds"] - 1)
            self.assertEqual(d["row"] is not None, d["changed"] != "" and d["gain"] > max(d["spread"], 0.01))
        large = decisions[1]
        self.assertRegex(large["row"], r"^\w+ lu %s count=1 n>39 n<=128 : .*=.*   # \d{4}-\d\d-\d\d, \d+\.\d\d times "
                                       r"the row before at n = 64, spread [\d.]+ %%$" % self.scalar)
        lines = self.read("found.txt").splitlines()
        self.assertIn(self.section, lines)
        self.assertIn(large["row"], lines)

        info = self.info(TRIFACTOR_TUNING=self.path("found.txt"))
        self.assertEqual(info["tuning_file"], self.path("found.txt"))
        found = [row for row in info["tuning"] if row["source"].startswith(self.path("found.txt"))]
        self.assertEqual([row["row"] for row in found], [d["row"] for d in decisions if d["row"]])
        self.assertTrue(all(row["ignored"] is None for row in found))

    def test_the_table_says_what_gained_and_where_it_is(self):
        text = self.tune("-o", "found.txt").stdout
        self.assertRegex(text, r"(?m)^row +scalar +n +count +before ms +after ms +gain % +spread % +tried  changed$")
        self.assertRegex(text, r"(?m)^lu +\w+ +64 +1 .*=")
        self.assertIn("1 of 1 classes of calls measured; 1 rows gained and are in found.txt\n", text)

    def test_the_library_finds_the_file_in_the_home_folder_by_itself(self):
        self.tune()
        name = self.path("config/trifactor/tuning.txt")
        self.assertEqual(self.info()["tuning_file"], name)
        self.assertTrue(self.info()["tuning"][0]["source"].startswith(name))
        self.assertIn("rows of " + name, self.succeed("info", env=self.environment()))
        measured = ["bench", "lu", "--n", "9", "--device", "host", "--seconds", "0", "--scalar", self.scalar, "--json"]
        self.assertEqual(json.loads(self.succeed(*measured, env=self.environment()))["tuning_file"], name)
        plain = self.succeed(*measured, env=self.environment(TRIFACTOR_TUNING="off"))
        self.assertNotIn("tuning_file", json.loads(plain))
        off = self.info(TRIFACTOR_TUNING="off")
        self.assertIsNone(off["tuning_file"])
        self.assertFalse(any(name in row["source"] for row in off["tuning"]))

    def test_standard_output_takes_the_rows(self):
        for name in ["-", "/dev/stdout"]:
            done = self.tune("-o", name)
            self.assertEqual(done.stdout.count(self.section), 1)
            self.assertIn("rows gained and are in standard output", done.stderr)

    def test_a_full_device_is_a_failed_write(self):
        done = self.run_here("tune", "--device", "host", "--ops", "lu", "--n", "9", "--budget", "0.1", "--scalar", self.scalar,
                             "-o", "/dev/full", env=self.environment())
        self.assertEqual((done.returncode, done.stderr.count("/dev/full: writing failed")), (3, 1), done.stderr)

    def test_rows_of_other_machines_stay_and_those_of_other_versions_go(self):
        other = "[trifactor 0.0.1 on another machine]\nsm_70 lu any : nb=3   # theirs\n"
        stale = "[trifactor 0.0.1 on %s]\nhost lu any : nb=5   # stale\n" % self.device
        ours = self.section + "\nhost solve any : nb=7   # ours\n"
        self.write("found.txt", "host value any : gpu_from=9   # by hand\n\n" + other + stale + ours)
        self.tune("-o", "found.txt")
        text = self.read("found.txt")
        self.assertTrue(text.startswith("host value any : gpu_from=9   # by hand\n\n" + other))
        self.assertNotIn("stale", text)
        self.assertEqual(text.count(self.section), 1)
        self.assertIn("# ours", text)
        self.tune("-o", "found.txt")                # the row of the same calls is replaced
        self.assertEqual(self.read("found.txt").count("lu %s count=1 n<=128 : " % self.scalar), 1)

    def test_a_file_that_holds_no_rows_is_not_written_over(self):
        self.write("letter.txt", "Dear reader\n")
        self.fail_with(2, "letter.txt:1: ", "tune", "--device", "host", "--ops", "lu", "--budget", "1s", "-o",
                       "letter.txt")
        self.assertEqual(self.read("letter.txt"), "Dear reader\n")
        self.fail_with(2, "overwrite", "tune", "--device", "host", "--from", "bad.txt", "-o", "bad.txt")


class BrokenOff(TuneTest):
    def test_an_interrupt_leaves_what_was_found(self):
        orders = ",".join(str(n) for n in range(64, 128))
        with subprocess.Popen([program.PROGRAM, "tune", "--device", "host", "--ops", "lu", "--n", orders, "--budget",
                               "10m", "--scalar", self.scalar, "--from", "bad.txt", "-o", "found.txt", "--json"],
                              cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, text=True) as running:
            row = None
            while row is None:
                row = json.loads(running.stdout.readline())["row"]
            running.send_signal(signal.SIGINT)
            running.stdout.read()
        self.assertEqual(running.returncode, -signal.SIGINT)
        self.assertEqual(self.files(), ["bad.txt", "found.txt"])
        self.assertIn(row, [row["row"] for row in self.info(TRIFACTOR_TUNING=self.path("found.txt"))["tuning"]])

    def test_the_budget_is_kept(self):
        begin = time.monotonic()
        done = self.run_tune("-o", "found.txt", "--json", budget="0.5", orders=",".join(map(str, range(40, 80))))
        self.assertLess(time.monotonic() - begin, 15)
        self.assertGreater(len(done.stdout.splitlines()), 0)


class Ignored(TuneTest):
    QUICK = ["bench", "cholesky", "--n", "9", "--device", "host", "--seconds", "0.01", "--against", "none"]

    def home(self, text):
        os.makedirs(self.path("config/trifactor"))
        self.write("config/trifactor/tuning.txt", text)

    def test_rows_of_another_version_or_device_aloud(self):
        version = program.info()["version"]
        for section, why in [("0.0.1 on " + self.device, "found with version 0.0.1"),
                             (version + " on another machine", "found on another machine")]:
            with self.subTest(section):
                self.write("mine.txt", "[trifactor %s]\nhost cholesky any : nb=4\n" % section)
                environment = self.environment(TRIFACTOR_TUNING=self.path("mine.txt"))
                done = self.run_here(*self.QUICK, env=environment)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stderr,
                                 r"^trifactor: .*mine\.txt:2: rows found with trifactor .* are ignored .*\n$")
                self.assertEqual(self.info(TRIFACTOR_TUNING=self.path("mine.txt"))["tuning"][0]["ignored"], why)
                self.assertIn("(ignored, %s) host cholesky" % why, self.succeed("info", env=environment))

    def test_a_broken_file_in_the_home_folder_aloud_while_one_that_is_named_is_an_error(self):
        self.home("host cholesky any : nb=none\n")
        done = self.run_here(*self.QUICK, env=self.environment())
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'^trifactor: .*tuning\.txt:1: "nb=none": .*; the file is ignored\n$')
        self.succeed(*self.QUICK, env=self.environment(TRIFACTOR_TUNING="off"))
        self.fail_with(2, "tuning.txt:1: ", *self.QUICK,
                       env=self.environment(TRIFACTOR_TUNING=self.path("config/trifactor/tuning.txt")))


class Usage(TuneTest):
    def test_wrong_words_are_named(self):
        for arguments, part in [(["--budget", "0"], "--budget: '0' is not a time"),
                                (["--budget", "ten"], "--budget: 'ten'"), (["--budget", "5x"], "--budget: '5x'"),
                                (["--budget", "-1m"], "--budget: '-1m'"), (["--ops", "lu,qr"], "qr"),
                                (["--n", "0"], "--n"), (["--ops", "sparse", "--n", "9"], "--n is of dense operations"),
                                (["--scalar", "f16"], "'f16' is not a scalar"), (["--from", "none.txt"], "none.txt")]:
            with self.subTest(arguments):
                self.fail_with(2, part, "tune", "--device", "host", "-o", "found.txt", *arguments)
        self.assertEqual(self.files(), ["bad.txt"])
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "tune", "--device", "cuda", "-o", "found.txt")


if __name__ == "__main__":
    program.main()
