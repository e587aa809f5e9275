"""trifactor power and bench --power, with a CPU package made of files."""
import csv
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest


class Power(ProgramTest):
    def setUp(self):
        super().setUp()
        self.zone = self.path("powercap/intel-rapl:0")
        os.makedirs(self.zone)
        self.environment = {**os.environ, "TRIFACTOR_POWERCAP": self.path("powercap")}
        self.count(0)
        self.fill("name", "package-0\n")
        self.fill("max_energy_range_uj", "262143328850\n")

    def fill(self, name, text):
        with open(os.path.join(self.zone, name + ".new"), "w") as file:
            file.write(text)
        os.replace(os.path.join(self.zone, name + ".new"), os.path.join(self.zone, name))

    def count(self, joules):
        self.fill("energy_uj", f"{round(joules * 1e6)}\n")

    def power(self, *arguments):
        return self.run_here("power", *arguments, env=self.environment)

    def test_counts_to_the_joule_and_passes_output_and_status_on(self):
        done = threading.Event()

        def heat():
            joules = 0
            while not done.wait(0.03):
                joules += 2.5
                self.count(joules)
                self.joules = joules

        heater = threading.Thread(target=heat)
        heater.start()
        # The last ticks come before the end: all that was counted is in the samples.
        result = self.power("--json", "-o", "w.csv", "--hertz", "100", "--", "sh", "-c", "echo out; sleep 0.4; exit 7")
        done.set(), heater.join()
        self.assertEqual((result.returncode, result.stdout), (7, "out\n"))
        summary = json.loads(result.stderr)
        self.assertEqual((summary["status"], summary["file"]), (7, "w.csv"))
        rapl = [s for s in summary["sensors"] if s["sensor"] == "RAPL package-0"][0]
        with open(self.path("w.csv")) as file:
            samples = [row for row in csv.DictReader(file) if row["what"] == "RAPL package-0"]
        spent = sum(float(r["watts"]) * (float(r["end_s"]) - float(r["begin_s"])) for r in samples)
        self.assertAlmostEqual(spent, rapl["joules"], delta=0.02)
        self.assertAlmostEqual(rapl["joules"] / 2.5, round(rapl["joules"] / 2.5), delta=1e-3)   # whole ticks
        self.assertGreater(rapl["joules"], 10)
        self.assertLessEqual(rapl["joules"], self.joules)

    def test_signals_become_128_and_their_number(self):
        self.assertEqual(self.power("--", "sh", "-c", "kill -9 $$").returncode, 128 + 9)

    def test_a_command_that_is_not_there_is_named(self):
        done = self.power("--", "./absent", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("./absent: cannot be started", done.stderr)
        self.assertNotIn("power.csv", self.files())
        self.assertIn("COMMAND", self.power().stderr)
        self.assertIn("standard output is the command's", self.power("-o", "-", "--", "true").stderr)

    def test_without_a_sensor_nothing_runs(self):
        if any(name.startswith("NVML") for name in program.info()["energy_sensors"]):
            self.skipTest("there is a GPU's sensor")
        environment = {**os.environ, "TRIFACTOR_POWERCAP": self.path("nowhere")}
        for arguments in [["power", "--", "touch", "ran"],
                          ["bench", "lu", "--device", "host", "--n", "9", "--power", "p.csv"]]:
            self.fail_with(3, "there is no energy sensor", *arguments, env=environment)
        self.assertEqual(self.files(), ["powercap"])

    def test_rows_of_every_operation_have_gflops_per_watt(self):
        if any(name.startswith("NVML") for name in program.info()["energy_sensors"]):
            self.skipTest("a GPU's sensor ticks more slowly than these rows run")
        done = threading.Event()

        def heat():
            joules = 0
            while not done.wait(0.002):
                joules += 0.1
                self.count(joules)

        heater = threading.Thread(target=heat)
        heater.start()
        self.addCleanup(lambda: (done.set(), heater.join()))
        for arguments in [["cholesky", "--n", "200"], ["lu", "--n", "200"], ["batch", "--n", "32", "--count", "50"],
                          ["sparse", "--matrix", "poisson3d:5", "--against", "none"],
                          ["sparse", "--matrix", "poisson3d:5", "--count", "3"]]:
            result = self.run_here("bench", *arguments, "--device", "host", "--seconds", "0", "--energy", "0.1",
                                   "--json", env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = [json.loads(line) for line in result.stdout.splitlines()]
            counted = [row for row in rows if row["joules"]]
            self.assertTrue(counted, result.stdout + result.stderr)
            for row in counted:
                self.assertAlmostEqual(row["gflops_per_watt"] * row["joules"] / (row["gflops"] * row["seconds"]), 1,
                                       places=6)
                self.assertGreater(row["energy_seconds"], 0)

    def test_bench_writes_watts_and_what_was_measured(self):
        done = self.run_here("bench", "lu", "--device", "host", "--n", "64,80", "--seconds", "0.1", "--power",
                             "p.jsonl", "--json", env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in self.read("p.jsonl").splitlines()]
        scalars = program.info()["scalars"]
        scalar = "f64" if "f64" in scalars else scalars[0]
        self.assertEqual([line["measured"] for line in lines if "measured" in line],
                         [f"lu {scalar} n=64 auto", f"lu {scalar} n=80 auto"])
        self.assertTrue(all(line["end"] > line["begin"] for line in lines))

    def test_watts_on_standard_output_leave_rows_to_standard_error(self):
        done = self.run_here("bench", "lu", "--device", "host", "--n", "64", "--seconds", "0", "--power", "-", "--json",
                             env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stderr)["op"], "lu")
        self.assertNotIn('"op"', done.stdout)
        self.assertIn('"measured":"lu ', done.stdout)


class Clocks(ProgramTest):
    """scripts/measure_clocks.py, with an nvidia-smi that writes down what it is asked for."""

    def measure(self, status, *arguments):
        os.makedirs(self.path("bin"))
        with open(self.path("bin/nvidia-smi"), "w") as file:
            file.write(f'#!/bin/sh\necho "$@" >> "{self.path("asked")}"\necho "not allowed"\nexit {status}\n')
        os.chmod(self.path("bin/nvidia-smi"), 0o755)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/measure_clocks.py")
        environment = {**os.environ, "PATH": self.path("bin") + os.pathsep + os.environ["PATH"]}
        return subprocess.run([sys.executable, script, "--program", program.PROGRAM, "--device", "host", "--n", "60",
                               "--energy", "0.01", "--clocks", "1500,1200", *arguments],
                              capture_output=True, text=True, env=environment, cwd=self.folder)

    def test_a_line_for_each_clock_which_is_given_back(self):
        done = self.measure(0, "--json", "rows.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:]], ["1500", "1200"])
        with open(self.path("asked")) as file:
            self.assertEqual(file.read().splitlines(), ["-lgc 1500,1500", "-lgc 1200,1200", "-rgc"])
        with open(self.path("rows.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual([(r["clock_mhz"], r["op"], r["n"]) for r in rows],
                         [(clock, op, 60) for clock in (1500, 1200) for op in ("cholesky", "lu")])

    def test_a_driver_that_refuses_is_quoted(self):
        done = self.measure(4)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nvidia-smi -lgc 1500,1500 failed: not allowed", done.stderr)


if __name__ == "__main__":
    program.main()
