"""trifactor trace: a timeline that viewers of the trace-event format open, and its summary."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

BLOCKED = ["--tuning", "whole=0 persistent=0 nb=32 leaf=16"]


class TraceTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.scalars = program.info()["scalars"]
        self.scalar = "f64" if "f64" in self.scalars else self.scalars[0]

    def trace(self, *arguments, device="host", op="cholesky"):
        """The summary, the names of the tracks, and each track's events."""
        (summary,) = self.succeed_json("trace", op, "--device", device, "--scalar", self.scalar, "-o", "t.json",
                                       *arguments)
        content = json.loads(self.read("t.json"))
        names = {e["tid"]: e["args"]["name"] for e in content["traceEvents"] if e["name"] == "thread_name"}
        tracks = {name: [] for name in names.values()}
        for event in content["traceEvents"]:
            self.assertIn(event["ph"], "MX")
            if event["ph"] == "X":
                tracks[names[event["tid"]]].append(event)
        for events in tracks.values():
            self.check_order(events, 0.5 if device == "cuda" else 1e-3)   # microseconds: what an event resolves
        return summary, tracks

    def check_order(self, events, tolerance):
        """One operation begins when the one before it in its lane has ended."""
        end = 0
        for event in events:
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"], end - tolerance)
            self.assertRegex(event["args"]["shape"], r"^\d+ x \d+( x \d+)?$")
            end = event["ts"] + event["dur"]


class Host(TraceTest):
    def test_one_track_with_every_operation(self):
        for looking in ["left", "right"]:
            summary, tracks = self.trace("--n", "100", "--tuning", BLOCKED[1] + " looking=" + looking)
            self.assertEqual(list(tracks), ["CPU"])
            events = tracks["CPU"]
            self.assertEqual({e["name"] for e in events}, {"cholesky_tile", "trsm", "gemm", "herk"})
            self.assertEqual(sum(e["name"] == "cholesky_tile" for e in events), 7)    # 32 = 16 + 16, three times, and 4
            self.assertEqual(sum(row["count"] for row in summary["operations"]), len(events))
            self.assertLessEqual(summary["lanes"][0]["busy_seconds"], summary["seconds"] * 1.000001)

    def test_shapes_are_those_of_the_operations(self):
        _, tracks = self.trace("--n", "96", "--tuning", BLOCKED[1] + " looking=right")
        gemms = [e["args"]["shape"] for e in tracks["CPU"] if e["name"] == "gemm"]
        self.assertIn("32 x 32 x 32", gemms)

    def test_a_sparse_factorization_has_tracks_for_branches_and_levels(self):
        summary, tracks = self.trace("--matrix", "poisson2d:20", op="sparse")
        self.assertEqual(set(tracks), {"CPU", "branches", "levels"})
        self.assertEqual(len(tracks["branches"]), 1)
        self.assertGreater(len(tracks["levels"]), 3)
        self.assertLess(len(tracks["levels"]), len(tracks["CPU"]))
        self.assertEqual(summary["n"], 400)
        refused = self.fail_with(2, "be at least", "trace", "sparse", "--device", "host", "--matrix", "poisson2d:20",
                                 "--max-device-bytes", "9", "--scalar", self.scalar, "-o", "t.json")
        least = refused.stderr.split("be at least ")[1].strip()
        _, tracks = self.trace("--matrix", "poisson2d:20", "--max-device-bytes", least, op="sparse")
        self.assertGreater(len(tracks["branches"]), 3)
        self.fail_with(2, "--uplo is of cholesky", "trace", "sparse", "--uplo", "upper", "-o", "t.json")

    def test_a_whole_matrix_is_one_operation(self):
        for uplo in ["lower", "upper"]:
            _, tracks = self.trace("--n", "50", "--uplo", uplo)
            self.assertEqual([e["name"] for e in tracks["CPU"]], ["cholesky_tile"])

    def test_lu_in_parts(self):
        summary, tracks = self.trace("--n", "100", "--tuning", "whole=0 nb=32 leaf=16", op="lu")
        self.assertEqual(summary["op"], "lu")
        events = tracks["CPU"]
        self.assertEqual({e["name"] for e in events}, {"lu_tile", "swap_rows", "trsm", "gemm"})
        self.assertEqual(sum(e["name"] == "lu_tile" for e in events), 7)    # 32 = 16 + 16, three times, and 4

    def test_every_scalar(self):
        for scalar in self.scalars:
            self.succeed("trace", "cholesky", "--device", "host", "--n", "70", "--scalar", scalar, *BLOCKED)
            self.assertEqual(json.loads(self.read("trace.json"))["otherData"]["scalar"], scalar)

    def test_the_table(self):
        text = self.succeed("trace", "cholesky", "--device", "host", "--n", "70", "--scalar", self.scalar, *BLOCKED)
        self.assertRegex(text, r"(?m)^lane +operation +count +ms$")
        self.assertRegex(text, r"(?m)^CPU +herk +\d+ +\d+\.\d+$")
        self.assertRegex(text, r"(?m)^CPU: busy \d+\.\d+ ms$")


class Usage(TraceTest):
    def test_bad_usage_is_status_2(self):
        for message, arguments in [
            ("op", []), ("qr", ["qr"]), ("--uplo", ["lu", "--n", "9", "--device", "host", "--uplo", "lower"]), ("--n", ["cholesky", "--n", "0"]), ("x", ["cholesky", "--n", "x"]),
            ("f16", ["cholesky", "--n", "9", "--scalar", "f16"]), ("--uplo", ["cholesky", "--uplo", "both"]),
            ("tpu", ["cholesky", "--device", "tpu"]), ("--mode", ["cholesky", "--mode", "fast"]),
            ("rubbish", ["cholesky", "--n", "9", "--device", "host", "--tuning", "rubbish=1"]),
            ("Hybrid", ["cholesky", "--n", "9", "--device", "host", "--mode", "hybrid"]),
            ("--matrix is of sparse: lu factors a random matrix", ["lu", "--matrix", "arrow:5"]),
            ("--ordering is of sparse", ["cholesky", "--ordering", "amd"]),
            ("--max-device-bytes is of sparse", ["cholesky", "--max-device-bytes", "2e9"]),
            ("--n is of cholesky and lu", ["sparse", "--n", "9"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.fail_with(2, message, "trace", *arguments).stdout, "")
                self.assertEqual(self.files(), [])

    def test_a_file_that_cannot_be_written_is_refused(self):
        self.fail_with(2, "no/where.json: cannot be written", "trace", "cholesky", "--n", "9", "--device", "host",
                       "-o", "no/where.json", "--scalar", self.scalar)


class Cuda(TraceTest):
    def test_the_side_lane_works_beside_the_main_lane(self):
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "trace", "cholesky", "--device", "cuda", "--n", "10")
            self.skipTest("no GPU")
        for looking in ["left", "right"]:
            tuning = "whole=0 persistent=0 nb=256 leaf=256 looking=" + looking
            summary, tracks = self.trace("--n", "4096", "--tuning", tuning, device="cuda")
            self.assertEqual([name for name in tracks if "lane" in name], ["main lane", "side lane"])
            side = summary["lanes"][1]
            self.assertGreater(side["overlap_seconds"], 0)
            self.assertLessEqual(side["overlap_seconds"], side["busy_seconds"] * 1.000001)

    def test_panels_of_lu_lie_beside_updates_in_the_background(self):
        if not program.has_gpu():
            self.skipTest("no GPU")
        summary, tracks = self.trace("--n", "2000", "--tuning", "nb=128 leaf=32", device="cuda", op="lu")
        self.assertEqual(list(tracks), ["main lane", "side lane", "background lane"])
        self.assertIn("lu_tile", {e["name"] for e in tracks["side lane"]})
        self.assertNotIn("lu_tile", {e["name"] for e in tracks["background lane"]})
        for lane in summary["lanes"][1:]:
            self.assertGreater(lane["overlap_seconds"], 0)

    def test_blocks_of_the_persistent_kernel_have_tracks(self):
        if not program.has_gpu():
            self.skipTest("no GPU")
        for n, pieces in [("1000", "macro_tiles=2000"), ("2000", "macro_tiles=100")]:
            _, tracks = self.trace("--n", n, "--tuning", "whole=0 persistent=100000 " + pieces, device="cuda")
            self.assertEqual(list(tracks)[:3], ["main lane", "chain", "worker 1"])
            (whole,) = tracks["main lane"]
            self.assertGreater(len(tracks["chain"]), 10)
            for name, events in tracks.items():
                self.assertLessEqual(sum(e["dur"] for e in events), whole["dur"] + 5, name)

    def test_hybrid_shows_the_cpu(self):
        if not program.has_gpu():
            self.skipTest("no GPU")
        _, tracks = self.trace("--n", "1500", "--mode", "hybrid", device="cuda")
        self.assertEqual(list(tracks), ["main lane", "side lane", "CPU"])
        self.assertEqual({e["name"] for e in tracks["CPU"]}, {"cholesky_tile"})
        self.assertEqual({e["name"] for e in tracks["side lane"]}, {"download", "upload"})


if __name__ == "__main__":
    program.main()
