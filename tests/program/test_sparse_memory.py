"""How much memory of a device sparse Cholesky takes: --max-device-bytes, and what solve and analyze tell."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest


class SparseMemory(ProgramTest):
    def setUp(self):
        super().setUp()
        if not program.has_scalar("f64"):
            self.skipTest("this build leaves f64 out")

    def need_gpu(self):
        if not program.has_gpu():
            self.skipTest("no GPU")

    def test_max_device_bytes_asks_for_the_sparse_solver_and_does_not_count_on_the_host(self):
        self.succeed("generate", "poisson2d:20", "-o", "A.mtx")    # too small to be sent to a device
        (free,) = self.succeed_json("solve", "A.mtx", "--device", "host", "--method", "sparse")
        (done,) = self.succeed_json("solve", "A.mtx", "--max-device-bytes", "1")
        self.assertEqual((done["method"], done["host_bytes"]), ("sparse", 0))
        self.assertEqual(done["memory_bytes"], free["memory_bytes"])
        self.assertLess(done["residual"], 30)
        text = self.succeed("solve", "A.mtx", "--max-device-bytes", "2e9")
        self.assertRegex(text, r"(?m)^memory +\S+ \S+ of the host$")
        self.fail_with(2, "--max-device-bytes belongs to the sparse solver, which does not take this matrix: --method lu", "solve",
                       "A.mtx", "--method", "lu", "--max-device-bytes", "2e9")
        for host in [["--device", "host"], ["--method", "sparse-lu"]]:
            self.fail_with(2, "--max-device-bytes is of sparse Cholesky on a GPU: %s does without one" % " ".join(host),
                           "solve", "A.mtx", *host, "--max-device-bytes", "2e9")

    def test_max_device_bytes_is_a_number_of_bytes(self):
        self.succeed("generate", "poisson2d:3", "-o", "A.mtx")
        for wrong in ["0", "-5", "0.5", "2e15", "nan", "inf", "much", "1GB"]:
            for command in [["solve", "A.mtx"], ["bench", "sparse", "--matrix", "A.mtx"]]:
                self.fail_with(2, "--max-device-bytes: '%s' is not a number of bytes in 1..1e15" % wrong, *command,
                               "--max-device-bytes=" + wrong)

    def test_a_factor_that_passes_through_the_device(self):
        self.need_gpu()
        self.succeed("generate", "poisson3d:20", "-o", "A.mtx")
        (free,) = self.succeed_json("solve", "A.mtx", "--device", "cuda")
        self.assertEqual(free["host_bytes"], 0)
        refused = self.fail_with(2, "max_device_bytes = 1 must be at least ", "solve", "A.mtx", "--device", "cuda",
                                 "--max-device-bytes", "1")
        least = re.search(r"at least (\d+)", refused.stderr).group(1)
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "cuda", "--max-device-bytes", least)
        self.assertLess(done["memory_bytes"], free["memory_bytes"])
        self.assertGreaterEqual(done["host_bytes"], 8 * done["factor_nonzeros"])
        self.assertLess(done["residual"], 30)
        self.assertRegex(self.succeed("solve", "A.mtx", "--device", "cuda", "--max-device-bytes", least),
                         r"(?m)^memory +\S+ \S+ of the device; the factor lies in \S+ \S+ of the host$")

    def test_analyze_tells_what_a_device_takes(self):
        (plan,) = self.succeed_json("analyze", "poisson3d:12")
        told = [phase for phase in plan["memory_bytes"] if phase.startswith("cuda")]
        self.assertEqual(told, ["cuda"] if program.has_gpu() else [])
        if program.has_gpu():
            self.assertGreater(plan["memory_bytes"]["cuda"], plan["factor_bytes"])


if __name__ == "__main__":
    program.main()
