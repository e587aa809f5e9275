"""The line on the terminal that shows steps which last."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest


def screen(text):
    """The lines that are left on a terminal: \\r goes back to their beginning, and what comes is written over them."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        cells = []
        for part in line.split("\r"):
            cells[:len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines


def read_terminal(end):
    """All that is written to the other end of a terminal until that is closed."""
    written = b""
    while True:
        try:
            piece = os.read(end, 65536)
        except OSError:         # closed
            break
        if not piece:
            break
        written += piece
    os.close(end)
    return written.decode()


class ProgressTest(ProgramTest):
    def on_terminal(self, *arguments, both=False, after="0", columns=None):
        """What the program wrote to stderr, or stderr and stdout, where that is a terminal; and what went to stdout else."""
        environment = {name: value for name, value in os.environ.items() if name != "TRIFACTOR_PROGRESS_AFTER"}
        if after is not None:
            environment["TRIFACTOR_PROGRESS_AFTER"] = after
        ours, theirs = pty.openpty()
        if columns:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        stdout = self.path("stdout")
        with open(stdout, "w") as file:
            done = subprocess.Popen([program.PROGRAM] + [str(a) for a in arguments], cwd=self.folder, env=environment,
                                    stdout=theirs if both else file, stderr=theirs)
        os.close(theirs)
        written = read_terminal(ours)
        self.assertEqual(done.wait(timeout=300), 0, written)
        with open(stdout) as file:
            return written, file.read()

    def needs_f64(self):
        if not program.has_scalar("f64"):
            self.skipTest("this build leaves f64 out")


class Terminal(ProgressTest):
    def test_percentage_and_time_left_where_steps_are_counted(self):
        self.needs_f64()
        text, _ = self.on_terminal("generate", "poisson2d:9", "-o", "A.mtx")
        for step in ["generating", "writing"]:
            self.assertIn("\rtrifactor: %s 100 %%, 0 s left" % step, text)

    def test_the_steps_of_a_solve(self):
        self.needs_f64()
        self.succeed("generate", "poisson2d:40", "-o", "A.mtx")
        text, _ = self.on_terminal("solve", "A.mtx", "-o", "x.mtx", "--device", "host")
        steps = re.findall(r"\rtrifactor: (\w+)", text)
        self.assertEqual(list(dict.fromkeys(steps)),
                         ["reading", "analysing", "factoring", "solving", "estimating", "checking", "writing"])
        self.assertRegex(text, r"\rtrifactor: analysing, \d+ s")
        self.assertIn("\rtrifactor: reading 100 %, 0 s left", text)         # by entries
        self.assertIn("\rtrifactor: factoring 100 %, 0 s left", text)       # by fronts

    def test_rows_of_a_benchmark(self):
        scalar = program.info()["scalars"][0]
        arguments = ["bench", "lu", "--n", "5,8,9,10", "--device", "host", "--seconds", "0.02", "--scalar", scalar]
        text, rows = self.on_terminal(*arguments)
        shown = list(dict.fromkeys(re.findall(r"trifactor: bench lu (\d+) %", text)))
        self.assertEqual(shown, ["0", "25", "50", "75", "100"])
        self.assertEqual(len(re.findall(r"(?m)^lu ", rows)), 4)

    def test_classes_of_calls_that_are_tuned(self):
        scalar = program.info()["scalars"][0]
        text, table = self.on_terminal("tune", "--ops", "lu", "--n", "8,16", "--device", "host", "--budget", "1s",
                                       "--scalar", scalar, "-o", "rows.txt")
        for part in ["0 %%; lu %s n = 8" % scalar, "50 %"]:
            self.assertIn("trifactor: tuning " + part, text)
        self.assertIn("2 of 2 classes", table)

    def test_a_step_within_another_follows_it(self):
        scalar = program.info()["scalars"][0]
        text, _ = self.on_terminal("bench", "sparse", "--matrix", "poisson2d:5", "--device", "host", "--seconds", "0.02",
                                   "--scalar", scalar, "--against", "none")
        for phase in ["analyze", "construct", "factor", "refactor", "solve"]:
            self.assertIn("trifactor: bench sparse 0 %%; measuring %s, 0 s" % phase, text)

    def test_the_line_goes_and_rows_stay_whole(self):
        scalar = program.info()["scalars"][0]
        arguments = ["bench", "lu", "--n", "5,8", "--device", "host", "--seconds", "0.02", "--scalar", scalar]
        text, _ = self.on_terminal(*arguments, both=True)
        self.assertIn("trifactor: bench lu", text)
        left = screen(text)
        self.assertEqual([line.split(" ")[0] for line in left[1:]], ["op", "lu", "lu", ""])
        self.assertNotIn("trifactor:", "\n".join(left))
        self.assertNotIn("\x1b", text)

    def test_the_line_fits_into_the_terminal(self):
        scalar = program.info()["scalars"][0]
        text, _ = self.on_terminal("bench", "lu", "--n", "5", "--device", "host", "--seconds", "0.02", "--scalar", scalar,
                                   columns=20)
        self.assertIn("\rtrifactor: bench lu\r", text)
        self.assertLess(max(len(part) for part in text.split("\r")), 20)

    def test_an_error_stands_on_a_line_of_its_own(self):
        self.write("A.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\nx\n")
        self.needs_f64()
        ours, theirs = pty.openpty()
        done = subprocess.Popen([program.PROGRAM, "solve", "A.mtx"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=theirs, env=dict(os.environ, TRIFACTOR_PROGRESS_AFTER="0"))
        os.close(theirs)
        left = screen(read_terminal(ours))
        self.assertEqual(done.wait(timeout=300), 2)
        self.assertRegex(left[0], "^trifactor: A.mtx:6: ")

    def test_a_short_step_is_not_shown(self):
        self.needs_f64()
        text, _ = self.on_terminal("generate", "arrow:5", "-o", "A.mtx", after=None)
        self.assertEqual(text, "")


class NoTerminal(ProgressTest):
    def test_nothing_is_shown(self):
        self.needs_f64()
        environment = dict(os.environ, TRIFACTOR_PROGRESS_AFTER="0")
        self.succeed("generate", "poisson2d:9", "-o", "A.mtx", env=environment)      # succeed() wants an empty stderr
        self.succeed("solve", "A.mtx", "--device", "host", env=environment)
        self.succeed("analyze", "A.mtx", env=environment)


if __name__ == "__main__":
    program.main()
