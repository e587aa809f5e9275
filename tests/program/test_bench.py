"""trifactor bench: its rows, as a table and as JSON."""
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

KEYS = """op scalar n count device mode seconds gflops us_per_column peer peer_seconds ratio residual joules commit
          machine uplo spread peer_spread kind nrhs""".split()
QUICK = ["--device", "host", "--seconds", "0.02"]


def cholesky_flops(n):
    return n ** 3 / 3 + n ** 2 / 2 + n / 6


class BenchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.scalars = program.info()["scalars"]
        self.scalar = "f64" if "f64" in self.scalars else self.scalars[0]

    def rows(self, op, *arguments):
        rows = self.succeed_json("bench", op, *QUICK, "--scalar", self.scalar, *arguments)
        for row in rows:
            self.assertEqual([key for key in KEYS if key not in row], [])
            self.assertEqual((row["op"], row["device"]), (op, "host"))
            self.assertGreater(row["seconds"], 0)
            self.assertLess(row["residual"], 30)
            self.assertGreaterEqual(row["residual"], 0)
        return rows


class Rows(BenchTest):
    def test_cholesky(self):
        small, large = self.rows("cholesky", "--n", "40,100")
        self.assertEqual([small["n"], large["n"]], [40, 100])
        for row in (small, large):
            self.assertEqual((row["peer"], row["uplo"], row["mode"], row["count"]), ("lapack", "lower", "auto", 1))
            self.assertAlmostEqual(row["ratio"], row["peer_seconds"] / row["seconds"], places=9)
            self.assertAlmostEqual(row["us_per_column"], row["seconds"] / row["n"] * 1e6, places=9)
            self.assertEqual((row["nrhs"], row["kind"]), (None, None))

    def test_lu(self):
        (row,) = self.rows("lu", "--n", "70")
        self.assertEqual((row["peer"], row["uplo"]), ("lapack", None))

    def test_the_count_of_operations_is_lapacks(self):
        if self.scalar != "f64":
            self.skipTest("this build leaves f64 out")
        n = 60
        for op, arguments, flops in [
            ("cholesky", [], cholesky_flops(n)),
            ("lu", [], 2 * n ** 3 / 3 - n ** 2 / 2 + 5 * n / 6),
            ("solve", ["--rhs", "3"], 2 * n ** 2 * 3),
            ("batch", ["--count", "10"], 10 * cholesky_flops(n)),
        ]:
            (row,) = self.rows(op, "--n", n, *arguments)
            self.assertAlmostEqual(row["gflops"] * row["seconds"] * 1e9 / flops, 1, places=9)

    def test_solve_with_both_factors(self):
        for method in ["cholesky", "lu"]:
            rows = self.rows("solve", "--n", "50", "--rhs", "1,7", "--method", method)
            self.assertEqual([(row["nrhs"], row["method"]) for row in rows], [(1, method), (7, method)])
            self.assertTrue(all(row["peer"] == "lapack" for row in rows))

    def test_inverse_from_both_factors(self):
        for method, peer in [("cholesky", "lapack"), ("lu", None)]:
            (row,) = self.rows("inverse", "--n", "50", "--method", method)
            self.assertEqual((row["method"], row["peer"]), (method, peer))

    def test_batches_of_every_kind(self):
        for kind in ["strided", "pointers"]:
            (row,) = self.rows("batch", "--n", "9", "--count", "50", "--kind", kind)
            self.assertEqual((row["kind"], row["count"], row["peer"]), (kind, 50, "lapack"))
            self.assertNotIn("fixed_ratio", row)
            self.assertAlmostEqual(row["us_per_column"], row["seconds"] / (50 * 9) * 1e6, places=9)
        for arguments in [["--kind", "ragged"], ["--sizes", "uniform"], ["--kind", "ragged", "--sizes", "fixed"]]:
            (row,) = self.rows("batch", "--n", "5", "--count", "60", *arguments)
            self.assertEqual((row["kind"], row["peer"]), ("ragged", "lapack"))
            self.assertAlmostEqual(row["fixed_ratio"], row["fixed_sum_seconds"] / row["seconds"], places=9)
            self.assertGreater(row["largest_seconds"], 0)

    def test_a_ragged_batch_has_sizes_from_1_to_n(self):
        (row,) = self.rows("batch", "--sizes", "uniform", "--n", "8", "--count", "4000", "--seed", "1")
        columns = row["seconds"] / row["us_per_column"] * 1e6
        self.assertLess(abs(columns / 4000 - 4.5), 0.2)

    def test_every_scalar_and_both_triangles(self):
        for op in ["cholesky", "batch"]:
            for uplo in ["lower", "upper"]:
                count = ["--count", "41"] if op == "batch" else []
                rows = self.succeed_json("bench", op, *QUICK, "--n", "31", "--scalar", ",".join(self.scalars),
                                         "--uplo", uplo, *count)
                self.assertEqual([(row["scalar"], row["uplo"]) for row in rows], [(s, uplo) for s in self.scalars])
                for row in rows:
                    self.assertLess(row["residual"], 30)

    def test_probing_large_matrices_finds_good_residuals_too(self):
        for op in ["cholesky", "lu"]:
            (row,) = self.rows(op, "--n", "1100", "--against", "none")
            self.assertLess(row["residual"], 5)

    def test_against_none_leaves_the_peer_out(self):
        (row,) = self.rows("cholesky", "--n", "20", "--against", "none")
        self.assertEqual([row[key] for key in ["peer", "peer_seconds", "peer_spread", "ratio"]], [None] * 4)

    def test_ranges_of_sizes(self):
        rows = self.rows("cholesky", "--n", "3,10:30:10", "--against", "none")
        self.assertEqual([row["n"] for row in rows], [3, 10, 20, 30])

    def test_the_same_seed_gives_the_same_matrix(self):
        row = lambda *seed: self.rows("cholesky", "--n", "50", "--against", "none", *seed)[0]
        self.assertEqual(row("--seed", "7")["residual"], row("--seed", "7")["residual"])
        self.assertNotEqual(row()["seed"], row()["seed"])

    def test_energy_is_null_where_no_sensor_is(self):
        (row,) = self.rows("cholesky", "--n", "300", "--against", "none", "--energy", "0.2")
        if not program.info()["energy_sensors"]:
            self.assertIsNone(row["joules"])
        elif row["joules"] is not None:
            self.assertGreater(row["joules"], 0)


class Text(BenchTest):
    def columns(self, text):
        """The lines below the heading, each as a dictionary; throws unless they are aligned with it."""
        lines = text.splitlines()
        heading = next(i for i, line in enumerate(lines) if line.startswith("op "))
        titles = [(m.group(), m.start(), m.end()) for m in re.finditer(r"\S+( \S+)*", lines[heading])]
        rows = []
        for line in lines[heading + 1:]:
            cells = [(m.group(), m.start(), m.end()) for m in re.finditer(r"\S+", line)]
            self.assertEqual(len(cells), len(titles), text)
            for cell, title in zip(cells, titles):
                self.assertTrue(cell[1] == title[1] or cell[2] == title[2], "%s under %s in\n%s" % (cell, title, text))
            rows.append({title[0]: cell[0] for cell, title in zip(cells, titles)})
        return lines[:heading], rows

    def test_one_aligned_table(self):
        for op, arguments, extra in [
            ("cholesky", ["--n", "9,200"], []), ("lu", ["--n", "9,200"], []),
            ("solve", ["--n", "9,200", "--rhs", "2"], ["rhs"]),
            ("batch", ["--n", "3,20", "--count", "30"], ["count", "kind"]),
            ("batch", ["--n", "3,4", "--count", "30", "--kind", "ragged"],
             ["count", "fixed-size sum ms", "ratio to it"]),
        ]:
            with self.subTest(op=op, arguments=arguments):
                above, rows = self.columns(self.succeed("bench", op, *QUICK, "--scalar", self.scalar, *arguments))
                self.assertIn("commit", above[0])
                self.assertEqual(len(rows), 2)
                for row in rows:
                    for title in ["op", "scalar", "n", "device", "mode", "ms", "spread %", "Gflop/s", "us/column",
                                  "peer", "peer ms", "ratio", "residual", "joules"] + extra:
                        self.assertIn(title, row)
                    self.assertLess(float(row["residual"]), 30)
                    self.assertTrue(math.isfinite(float(row["ms"]) + float(row["ratio"])))

    def test_rows_come_as_they_are_measured(self):
        done = self.run_here("bench", "cholesky", *QUICK, "--scalar", self.scalar, "--n", "9,2147483647")
        self.assertEqual(done.returncode, 3, done.stderr)       # the second row needs too much memory
        self.assertRegex(done.stderr, r"^trifactor: .* memory")
        self.assertRegex(done.stdout, r"(?m)^cholesky +\w+ +9 ")


class Usage(BenchTest):
    def test_bad_usage_is_status_2(self):
        for message, arguments in [
            ("op", []), ("qr", ["qr"]), ("--n: '0'", ["lu", "--n", "0"]), ("--n: 'x'", ["lu", "--n", "8,x"]),
            ("--n: ''", ["lu", "--n", "8,"]), ("--n: '1:2'", ["lu", "--n", "1:2"]), ("empty", ["lu", "--n", "9:2:1"]),
            ("--n: '-4'", ["lu", "--n=-4"]), ("--n: '3000000000'", ["lu", "--n", "3000000000"]),
            ("f16", ["lu", "--scalar", "f16"]), ("--uplo", ["lu", "--uplo", "both"]), ("--mode", ["lu", "--mode", "x"]),
            ("--device", ["lu", "--device", "tpu"]), ("--count", ["batch", "--count", "0"]),
            ("--against", ["lu", "--against", "magma"]), ("--kind", ["batch", "--kind", "list"]),
            ("needs --kind ragged", ["batch", "--kind", "strided", "--sizes", "uniform"]),
            ("needs --device cuda", ["lu", "--device", "host", "--against", "cusolver"]),
            ("--count belongs to bench batch", ["lu", "--count", "3"]),
            ("--rhs belongs to bench solve", ["lu", "--rhs", "3"]), ("--energy", ["lu", "--energy", "-1"]),
            ("--wrong", ["lu", "--wrong"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.fail_with(2, message, "bench", *arguments).stdout, "")

    def test_tuning_reaches_the_library(self):
        arguments = ["bench", "cholesky", *QUICK, "--scalar", self.scalar, "--n", "20", "--against", "none"]
        self.fail_with(2, "rubbish", *arguments, "--tuning", "rubbish=1")
        self.assertEqual(self.succeed_json(*arguments, "--tuning", "nb=8")[0]["tuning"], "nb=8")


class Cuda(BenchTest):
    def test_rows_on_the_gpu(self):
        if not program.has_gpu():
            self.fail_with(3, "", "bench", "cholesky", "--device", "cuda", "--n", "10", "--against", "none")
            self.skipTest("no GPU")
        for op, arguments in [("cholesky", []), ("lu", []), ("solve", ["--rhs", "5"]),
                              ("solve", ["--method", "lu"]), ("batch", ["--count", "20"])]:
            for against in ["cusolver", "lapack", "none"]:
                rows = self.rows_on_gpu(op, "--n", "40,1100", "--against", against, *arguments)
                self.assertEqual(len(rows), 2 * len(self.scalars))
                self.assertEqual({row["peer"] for row in rows}, {None if against == "none" else against})
        for row in self.rows_on_gpu("batch", "--sizes", "uniform", "--n", "6", "--count", "500"):
            self.assertIsNone(row["peer"])
            self.assertGreater(row["fixed_ratio"], 0)

    def rows_on_gpu(self, op, *arguments):
        rows = self.succeed_json("bench", op, "--device", "cuda", "--seconds", "0.05",
                                 "--scalar", ",".join(self.scalars), *arguments)
        for row in rows:
            self.assertEqual(row["device"], "cuda")
            self.assertLess(row["residual"], 30)
        return rows


if __name__ == "__main__":
    program.main()
