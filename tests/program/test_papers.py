"""bench/papers: every figure of the papers at toy size, with a CPU package made of files in place of a power sensor."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANTED = [f"gpu-only:{n}" for n in [4, 5, 6, 7, *range(9, 18)]] + [f"batched:{n}" for n in range(5, 12)] + [
    f"energy:{n}" for n in [8, 9, 10, *range(12, 20), "table-1"]] + [f"sparse:{n}"
                                                                     for n in [3, 5, 6, 8, *range(10, 15)]]
WITHOUT = {"energy:8",                   # of a kernel in bench/variants, which needs a GPU
           "sparse:13", "sparse:14"}     # compare with CHOLMOD or cuDSS, which toys leave out


# Rows and a timeline such as trifactor_variants writes, for a machine without a GPU.
VARIANTS = """
import json, sys
words = dict(zip(sys.argv[2:], sys.argv[3:]))
where = {"op": "panel", "scalar": "f64", "machine": "a GPU", "device": "cuda"}
if sys.argv[1] == "panel":
    for m in words["--m"].split(","):
        for mode in words["--design"].split(","):
            seconds = {"d1": 9e-3, "d2-greedy": 6e-3, "d2-lazy": 4e-3}[mode]
            print(json.dumps({**where, "m": int(m), "n": int(words["--n"]), "mode": mode, "seconds": seconds,
                              "gflops": 1 / seconds}))
else:
    events = []
    for b in range(2):
        events.append({"ph": "M", "pid": 1, "tid": b, "name": "thread_name", "args": {"name": f"block {b}"}})
        for k, name in enumerate(["idamax", "wait scale", "update"]):
            events.append({"ph": "X", "pid": 1, "tid": b, "name": name, "ts": 4 * k + b, "dur": 4})
    json.dump({"traceEvents": events}, open(words["-o"], "w"))
    print(json.dumps({**where, "m": 8192, "n": 8, "mode": words["--design"], "seconds": 1.3e-5}))
"""


class Heater(threading.Thread):
    """Counts joules, as a CPU package does."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.file, self.done, self.microjoules = os.path.join(folder, "energy_uj"), threading.Event(), 0
        self.count()

    def count(self):
        self.microjoules += 100000
        with open(self.file + ".new", "w") as file:
            file.write(f"{self.microjoules}\n")
        os.replace(self.file + ".new", self.file)

    def run(self):
        while not self.done.wait(0.002):
            self.count()


class Papers(ProgramTest):
    def setUp(self):
        super().setUp()
        if not {"f32", "f64"} <= set(program.info()["scalars"]):
            self.skipTest("the figures are in single and double")

    def papers(self, *arguments, env=None):
        return subprocess.run([sys.executable, str(ROOT / "bench" / "papers"), *map(str, arguments)], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)

    def check_picture(self, picture):
        """Something is drawn, and nothing outside."""
        root = xml.etree.ElementTree.parse(picture).getroot()
        width, height = map(float, root.get("viewBox").split()[2:])
        marks = 0
        for element in root.iter():
            marks += element.tag.endswith("}polyline") or element.tag.endswith("}rect")
            points = [point.split(",") for point in element.get("points", "").split()]
            points += [(element.get(x), element.get(y))
                       for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")) if element.get(x)]
            if element.tag.endswith("}rect") and element.get("x"):
                points.append((float(element.get("x")) + float(element.get("width")), element.get("y")))
            for x, y in points:
                self.assertTrue(0 <= float(x) <= width and 0 <= float(y) <= height, f"{picture.name}: {element.attrib}")
        self.assertGreater(marks, 1, picture.name)

    def test_lists_every_figure_with_its_command_or_why_there_is_none(self):
        done = self.papers("list", "--program", program.PROGRAM)
        self.assertEqual(done.returncode, 0, done.stderr)
        entries = re.split(r"(?m)^(?=[a-z-]+:)", done.stdout)[1:]
        self.assertEqual([re.match(r"[a-z-]+:[\w-]+", entry).group() for entry in entries], WANTED)
        for entry in entries:
            self.assertRegex(entry, r"\n  (trifactor |trifactor_variants |cannot be made: )")
        host = self.papers("list", "--scale", "cpu", "--program", program.PROGRAM).stdout
        self.assertRegex(host, r"energy:8: .*\n  cannot be made: .* is in bench/variants: it needs a GPU")
        listed = self.papers("list", "--scale", "gpu", "--program", program.PROGRAM).stdout
        built = (ROOT / "build" / "variants" / "trifactor_variants").exists()
        self.assertRegex(listed, r"energy:9: .*\n  trifactor bench panel .*\n  "
                         + ("trifactor_variants panel" if built else "without .*: there is no trifactor_variants"))

    def test_commands_for_a_gpu_can_be_read(self):
        if program.has_gpu():
            self.skipTest("they would run")
        listed = self.papers("list", "--scale", "gpu", "--program", program.PROGRAM).stdout
        commands = {line.strip() for line in listed.splitlines() if line.startswith("  trifactor ")
                    and "--device cuda" in line}
        self.assertGreater(len(commands), 30)
        for command in sorted(commands):
            words = shlex.split(command.replace("{file}", "out"))[1:]
            self.fail_with(3, program.why_no_gpu(), *words)              # and not 2, bad usage

    def test_makes_every_figure(self):
        zone = self.path("powercap/intel-rapl:0")
        os.makedirs(zone)
        with open(os.path.join(zone, "name"), "w") as file:
            file.write("package-0\n")
        heater = Heater(zone)
        heater.start()
        environment = {**os.environ, "TRIFACTOR_POWERCAP": self.path("powercap"), "OMP_NUM_THREADS": "1"}
        arguments = ["run", "all", "--toy", "--program", program.PROGRAM, "--out", self.path("out")]
        done = self.papers(*arguments, env=environment)
        heater.done.set(), heater.join()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        by_chance = set()
        if any(name.startswith("NVML") for name in program.info()["energy_sensors"]):
            by_chance = {"energy:17", "energy:18", "energy:table-1"}  # a GPU's sensor may tick more slowly than toys run
        for name in WANTED:
            picture = pathlib.Path(self.path("out")) / (name.replace(":", "-") + ".svg")
            if name not in by_chance:
                self.assertEqual(picture.exists(), name not in WITHOUT, name + done.stdout)
            if picture.exists():
                self.check_picture(picture)
        claims = pathlib.Path(self.path("out/claims.md")).read_text()
        for paper in ("gpu-only", "batched", "energy", "sparse"):
            self.assertRegex(claims, rf"## {paper}\n\| figure \| what \| paper \| ours \|\n\|---\|---\|---\|---\|\n\| ")
        if "energy:17" not in by_chance:
            self.assertRegex(claims, r"host, Gflop/s/W \| [\d.]+ \| \d")

        again = self.papers(*arguments, env=environment)                 # nothing is measured twice
        self.assertNotRegex(again.stdout, r"(?m)^ +[\d.]+ s  trifactor")
        before = (pathlib.Path(self.path("out")) / "gpu-only-17.svg").read_text()
        (pathlib.Path(self.path("out")) / "gpu-only-17.svg").unlink()
        self.assertIn("figures in", self.papers("draw", self.path("out")).stdout)
        self.assertEqual((pathlib.Path(self.path("out")) / "gpu-only-17.svg").read_text(), before)

        page = pathlib.Path(self.path("docs/papers.md"))
        page.parent.mkdir()
        page.write_text((ROOT / "docs" / "papers.md").read_text())
        for _ in range(2):                                   # the second time, tables take the place of tables
            self.assertEqual(self.papers("page", self.path("out"), "--page", page).returncode, 0)
        self.assertEqual(self.papers("page", self.path("out"), "--page", page, "--check").returncode, 0)
        text = page.read_text()
        page.write_text(text.replace("| batched", "| other").replace("| paper | ours |", "| paper | theirs |"))
        self.assertIn("differs from", self.papers("page", self.path("out"), "--page", page, "--check").stderr)
        self.assertEqual(text.count("| figure | what | paper | ours |"), 4)
        for picture in re.findall(r"\]\((pictures/paper-[\w-]+\.svg)\)", text):
            self.assertTrue((page.parent / picture).exists())
        self.assertIn("![gpu-only:17: Cholesky, double](pictures/paper-gpu-only-17.svg)", text)

    def variants(self):
        """A program in the place of trifactor_variants."""
        file = pathlib.Path(self.path("trifactor_variants"))
        file.write_text(f"#!{sys.executable}\n{VARIANTS}")
        file.chmod(0o755)
        return file

    def test_shows_the_blocks_of_a_design_that_the_library_lacks(self):
        arguments = ["run", "energy:8", "--scale", "gpu", "--program", program.PROGRAM, "--out", self.path("out")]
        done = self.papers(*arguments, "--variants", self.variants())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ +[\d.]+ s  trifactor_variants trace .* --design d2-lazy -o ")
        picture = pathlib.Path(self.path("out")) / "energy-8.svg"
        self.check_picture(picture)
        lanes = re.findall(r">((?:greedy|lazy) \d)<", picture.read_text())
        self.assertEqual(lanes, ["greedy 0", "greedy 1", "lazy 0", "lazy 1"])
        self.assertIn(">\u00b5s<", picture.read_text())
        claims = pathlib.Path(self.path("out/claims.md")).read_text()
        self.assertIn("| 8 | lazy over greedy, 8192 x 8 | above 1 | 1.50 |", claims)

    def test_the_papers_panels_stand_beside_ours(self):
        if program.has_gpu():
            self.skipTest("the library's panels would be measured")
        arguments = ["run", "energy:9", "--scale", "gpu", "--program", program.PROGRAM, "--out", self.path("out")]
        done = self.papers(*arguments, "--variants", self.variants())
        self.assertIn("failed with status 3: trifactor bench panel", done.stdout)
        text = (pathlib.Path(self.path("out")) / "energy-9.svg").read_text()
        self.assertRegex(text, r"(?s)>D1<.*>D2<")
        claims = pathlib.Path(self.path("out/claims.md")).read_text()
        self.assertIn("| 9 | D2 over D1, tallest | 1.8 | 2.2 |", claims)
        self.assertNotIn("cuSOLVER", claims)             # it was not measured

    def test_variants_that_do_not_exist_are_named(self):
        listed = self.papers("list", "--scale", "gpu", "--program", program.PROGRAM, "--variants", self.path("none"))
        self.assertIn(f"there is no program {self.path('none')}", listed.stderr)
        self.assertNotEqual(listed.returncode, 0)

    def test_what_it_does_not_know_is_named(self):
        done = self.papers("run", "gpu-only:99", "--toy", "--program", program.PROGRAM)
        self.assertIn("no figure 'gpu-only:99'", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("takes a folder that run has written", self.papers("draw", self.path("empty")).stderr)


if __name__ == "__main__":
    program.main()
