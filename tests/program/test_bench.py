"""trifactor bench: its rows, as a table and as JSON."""
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

KEYS = """op scalar n count device mode seconds gflops us_per_column peer peer_seconds ratio residual joules commit
          machine uplo spread peer_spread kind nrhs gflops_per_watt peer_gflops_per_watt energy_seconds peer_energy_seconds""".split()
QUICK = ["--device", "host", "--seconds", "0.002"]


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
            self.assertEqual((row["nrhs"], row["kind"], row["ld"]), (None, None, row["n"]))
        (padded,) = self.rows("cholesky", "--n", "40", "--pad", "3")
        self.assertEqual(padded["ld"], 43)

    def test_lu(self):
        (row,) = self.rows("lu", "--n", "70")
        self.assertEqual((row["peer"], row["uplo"]), ("lapack", None))
        rows = self.rows("lu", "--n", "70", "--mode", "auto,host,lapack", "--pad", "3")
        self.assertEqual([(row["mode"], row["peer"], row["ld"]) for row in rows],
                         [("auto", "lapack", 73), ("host", "lapack", 73), ("lapack", None, 73)])
        self.assertEqual([row["mode"] for row in self.rows("lu", "--n", "30", "--mode", "all")], ["auto", "lapack"])

    def test_interchanges_alone(self):
        rows = self.rows("swap", "--m", "40,100", "--n", "7", "--nb", "5,40")
        self.assertEqual([(row["m"], row["n"], row["nb"], row["peer"]) for row in rows],
                         [(m, 7, nb, "lapack") for m in (40, 100) for nb in (5, 40)])
        for row in rows:
            self.assertGreater(row["bytes"], 0)
            self.assertLessEqual(row["bytes"], 2 * 2 * row["nb"] * 7 * 16)     # at most two rows are moved by a pivot
            self.assertEqual(row["residual"], 0)

    def test_openmp_may_give_fewer_threads(self):   # OpenBLAS would wait for the others
        for name, value in (("OMP_THREAD_LIMIT", "1"), ("OMP_DYNAMIC", "true"), ("OMP_MAX_ACTIVE_LEVELS", "0")):
            row, = self.succeed_json("bench", "lu", *QUICK, "--scalar", self.scalar, "--n", "300",
                                     env=dict(os.environ, **{name: value}))
            self.assertLess(row["residual"], 30)

    def test_panels(self):
        rows = self.rows("panel", "--m", "30,40", "--n", "8,20")
        self.assertEqual([(row["m"], row["n"]) for row in rows], [(30, 8), (40, 8), (30, 20), (40, 20)])
        for row in rows + self.rows("panel", "--m", "1,7,40", "--n", "90"):
            least, most = sorted((row["m"], row["n"]))
            self.assertAlmostEqual(row["us_per_column"] / (row["seconds"] * 1e6 / least), 1, 3)
            per_flop = 4 if row["scalar"].startswith("c") else 1
            self.assertAlmostEqual(row["gflops"] * row["seconds"] * 1e9 / per_flop / (least * least * (most - least / 3)), 1, delta=2.5 / least)
        text = self.succeed("bench", "panel", *[x for x in QUICK if x != "--json"], "--m", "30", "--n", "8")
        self.assertRegex(text, r"(?m)^op +scalar +m +n +device")

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

    def test_presets_of_batches(self):
        rows = self.rows("batch", "--preset", "ib", "--count", "1")
        self.assertEqual(len({(row["n"], row["tuning"]) for row in rows}), 18)
        for row in rows:
            self.assertEqual((row["kind"], row["count"], row["preset"]), ("strided", 1, "ib"))
            self.assertEqual(row["bytes"] % (row["n"] * (row["n"] + 1) * 2), 0)
            self.assertAlmostEqual(row["part_of_copy"], row["bytes"] / row["seconds"] / row["copy_rate"], places=9)
        self.assertIn("of copy %", self.succeed("bench", "batch", *QUICK, "--scalar", self.scalar, "--n", "3", "--count", "9"))

    def test_presets_that_the_help_names(self):
        named = re.search(r"--preset TEXT +(.*?), in place", re.sub(r"\s+", " ", self.succeed("bench", "batch", "--help")))
        for preset in re.split(", | or ", named.group(1)):
            self.fail_with(2, "'f16' is not", "bench", "batch", "--preset", preset, "--scalar", "f16")    # which comes next

    def test_presets_bring_their_own_count_and_method(self):
        rows = self.rows("batch", "--preset", "trsm", "--count", "3", "--rhs", "5")
        self.assertEqual([(row["n"], row["tuning"]) for row in rows],
                         [(n, None) for n in (128, 256, 512)])
        for row in rows:
            self.assertEqual((row["method"], row["nrhs"], row["count"], row["peer"]), ("solve", 5, 3, "lapack"))
            self.assertIsNone(row["host_us"])    # the host has no call that only enqueues
            self.assertAlmostEqual(row["part_of_copy"], row["bytes"] / row["seconds"] / row["copy_rate"], places=9)
        for row in self.rows("batch", "--method", "factor-solve", "--n", "7,40", "--count", "5", "--rhs", "1,3"):
            self.assertEqual((row["method"], row["count"], row["peer"]), ("factor-solve", 5, "lapack"))
            self.assertLess(row["residual"], 30)
        (row,) = self.rows("batch", "--sizes", "one-large", "--n", "20", "--count", "20", "--against", "none")
        self.assertEqual(row["kind"], "ragged")
        self.assertAlmostEqual(row["seconds"] / row["us_per_column"] * 1e6, 20 + 19 * 16, places=3)
        rows = self.rows("batch", "--preset", "schedule", "--count", "2", "--against", "none")
        self.assertEqual({row["sizes"] for row in rows}, {"384"})
        self.assertEqual(sum("sorted=1" in row["tuning"] for row in rows), len(rows) / 3)
        (row,) = self.rows("batch", "--sizes", "5", "--n", "7", "--count", "400", "--against", "none")
        columns = row["seconds"] / row["us_per_column"] * 1e6
        self.assertLess(abs(columns / 400 - 5), 0.5)             # uniform in 3..7

    def test_small_matrices_of_every_scalar_are_positive_definite(self):
        self.succeed_json("bench", "batch", *QUICK, "--n", "2,3,8", "--count", "4000", "--seed", "1", "--against", "none",
                          "--scalar", ",".join(self.scalars))

    def test_batches_of_solves(self):
        for kind in ["strided", "pointers"]:
            for uplo in ["lower", "upper"]:
                rows = self.rows("batch", "--method", "solve", "--n", "12", "--count", "30", "--rhs", "1,4", "--kind", kind,
                                 "--uplo", uplo)
                self.assertEqual([(row["nrhs"], row["kind"], row["uplo"]) for row in rows], [(1, kind, uplo), (4, kind, uplo)])
                flops = 2 * 12 ** 2 * 4 * 30 * (4 if self.scalar.startswith("c") else 1)
                self.assertAlmostEqual(rows[1]["gflops"] * rows[1]["seconds"] * 1e9 / flops, 1, places=9)
        self.fail_with(2, "--kind ragged", "bench", "batch", "--method", "solve", "--kind", "ragged", "--n", "5")

    def test_values_on_the_host_have_no_peer(self):
        small, large = self.rows("value", "--n", "30,90")
        self.assertEqual((small["n"], small["peer"], small["nrhs"], large["n"]), (30, None, 1, 90))

    def test_batches_of_lu(self):
        for kind in ["strided", "pointers"]:
            (row,) = self.rows("batch", "--method", "lu", "--n", "9", "--count", "50", "--kind", kind)
            self.assertEqual((row["kind"], row["count"], row["peer"], row["method"]), (kind, 50, "lapack", "lu"))
            self.assertLess(row["residual"], 30)
        self.fail_with(2, "--kind ragged", "bench", "batch", "--method", "lu", "--kind", "ragged", "--n", "5")

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
        if row["joules"] is None:
            self.assertEqual(row["energy_seconds"], 0)
        else:
            self.assertGreater(row["joules"], 0)
            self.assertGreaterEqual(row["energy_seconds"], 0.2)


class Modes(BenchTest):
    def test_side_by_side_with_one_peer(self):
        rows = self.rows("cholesky", "--n", "90", "--mode", "native-left,auto,native-right,host")
        self.assertEqual([row["mode"] for row in rows], ["native-left", "auto", "native-right", "host"])
        self.assertEqual({(row["peer"], row["peer_seconds"]) for row in rows}, {("lapack", rows[0]["peer_seconds"])})
        self.assertEqual([row["tuning"] for row in rows], ["whole=0 persistent=0 looking=left", None,
                                                           "whole=0 persistent=0 looking=right", None])

    def test_all_shows_the_peer_as_a_row_of_its_own(self):
        *ours, lapack = self.rows("cholesky", "--n", "60,70", "--mode", "all")
        self.assertEqual([row["mode"] for row in ours], ["auto", "native-left", "native-right", "lapack",
                                                         "auto", "native-left", "native-right"])
        self.assertEqual((lapack["mode"], lapack["n"], lapack["peer"], lapack["ratio"]), ("lapack", 70, None, None))
        for row in ours[4:]:
            self.assertEqual(row["peer_seconds"], lapack["seconds"])

    def test_tuning_of_the_call_holds_beside_that_of_the_mode(self):
        (row,) = self.rows("cholesky", "--n", "90", "--mode", "native-left", "--tuning", "nb=8 looking=right")
        self.assertEqual(row["tuning"], "nb=8 looking=right whole=0 persistent=0 looking=left")

    def test_gflops_per_watt_are_known_where_joules_are(self):
        for row in self.rows("cholesky", "--n", "200", "--mode", "auto,lapack", "--energy", "0.2"):
            if row["joules"] is None:
                self.assertIsNone(row["gflops_per_watt"])
            else:
                self.assertAlmostEqual(row["gflops_per_watt"], row["gflops"] * row["seconds"] / row["joules"])


class Parts(BenchTest):
    def parts(self, op, *arguments, scalars=None):
        rows = self.succeed_json("bench", op, *QUICK, "--scalar", scalars or self.scalar, *arguments)
        for row in rows:
            self.assertEqual((row["op"], row["device"], row["mode"], row["peer"]), (op, "host", "native", None))
            self.assertGreater(row["gflops"], 0)
        return rows

    def test_updates_by_width_and_way_of_looking(self):
        rows = self.parts("update", "--n", "96", "--nb", "16,32")
        self.assertEqual([(row["nb"], row["looking"]) for row in rows],
                         [(16, "left"), (16, "right"), (32, "left"), (32, "right")])
        self.assertEqual({row["first"] for row in rows}, {None})
        self.assertEqual({row["residual"] for row in rows}, {None})
        self.assertEqual(rows[0]["tuning"], "nb=16 looking=left")

    def test_both_ways_of_looking_have_the_same_updates_to_do(self):
        for n, nb in [(96, 32), (100, 32), (50, 49)]:
            left, right = (row["gflops"] * row["seconds"] for row in self.parts("update", "--n", n, "--nb", nb))
            self.assertAlmostEqual(left / right, 1, places=9)

    def test_steps_add_up_to_the_whole(self):
        for looking in ["left", "right"]:
            (whole,) = self.parts("update", "--n", "100", "--nb", "32", "--looking", looking)
            steps = self.parts("update", "--n", "100", "--nb", "32", "--looking", looking, "--each")
            self.assertEqual([row["first"] for row in steps], [32, 64, 96] if looking == "left" else [0, 32, 64])
            self.assertAlmostEqual(sum(row["gflops"] * row["seconds"] for row in steps),
                                   whole["gflops"] * whole["seconds"])

    def test_updates_of_every_scalar_and_both_triangles(self):
        for uplo in ["lower", "upper"]:
            rows = self.parts("update", "--n", "40", "--nb", "16", "--uplo", uplo, scalars=",".join(self.scalars))
            self.assertEqual(len(rows), 2 * len(self.scalars))

    def test_widths_that_leave_nothing_to_update_are_left_out(self):
        self.assertEqual({row["nb"] for row in self.parts("update", "--n", "100")}, {64})

    def test_tiles_by_order_and_leaf(self):
        rows = self.parts("tile", "--n", "70,150", "--form", "inclusive")
        self.assertEqual([(row["n"], row["leaf"]) for row in rows],
                         [(70, 64), (70, 70), (150, 64), (150, 128), (150, 150)])
        self.assertEqual({(row["form"], row["ib"]) for row in rows}, {("inclusive", None)})
        for row in rows:
            self.assertLess(row["residual"], 30)
            self.assertAlmostEqual(row["us_per_column"], row["seconds"] / row["n"] * 1e6, places=9)
        (row,) = self.parts("tile", "--n", "20", "--leaf", "8", "--tuning", "interleaved=0", "--uplo", "upper")
        self.assertEqual(row["tuning"], "interleaved=0 whole=0 persistent=0 nb=20 leaf=8 tile=inclusive")

    def test_tiles_by_form_and_width_of_a_step(self):
        rows = self.parts("tile", "--n", "70")
        self.assertEqual([(row["leaf"], row["form"], row["ib"]) for row in rows],
                         [(64, "inclusive", None), (64, "exclusive", 16), (64, "exclusive", 32), (70, "inclusive", None),
                          (70, "exclusive", 16), (70, "exclusive", 32), (70, "exclusive", 64)])
        for row in rows:
            self.assertLess(row["residual"], 30)
        (row,) = self.parts("tile", "--n", "20", "--leaf", "20", "--form", "exclusive", "--ib", "7")
        self.assertEqual(row["tuning"], "whole=0 persistent=0 nb=20 leaf=20 tile=exclusive ib=7")

    def test_tables(self):
        for op, arguments, titles in [("update", ["--n", "40", "--nb", "8"], ["looking", "nb", "Tflop/s", "tuning"]),
                                      ("tile", ["--n", "20"], ["leaf", "form", "ib", "Gflop/s", "us/column", "tuning"])]:
            _, heading, *rows = self.succeed("bench", op, *QUICK, "--scalar", self.scalar, *arguments).splitlines()
            for title in titles:
                self.assertIn(" " + title, heading)
            for row in rows:
                self.assertRegex(row[heading.index("tuning"):], r"^[a-z=0-9 ]+$")


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
            ("batch", ["--n", "3,20", "--count", "30"], ["count", "kind", "host us"]),
            ("batch", ["--n", "3,20", "--count", "30", "--method", "solve"], ["rhs", "count", "host us"]),
            ("batch", ["--n", "3,4", "--count", "30", "--kind", "ragged"],
             ["count", "fixed-size sum ms", "ratio to it"]),
        ]:
            with self.subTest(op=op, arguments=arguments):
                above, rows = self.columns(self.succeed("bench", op, *QUICK, "--scalar", self.scalar, *arguments))
                self.assertIn("commit", above[0])
                self.assertEqual(len(rows), 2)
                for row in rows:
                    for title in ["op", "scalar", "n", "device", "mode", "ms", "spread %", "Gflop/s", "us/column",
                                  "peer", "peer ms", "ratio", "residual", "joules", "Gflop/s/W", "peer's"] + extra:
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
            ("the operation is missing", []), ("bench has no operation 'qr'", ["qr"]), ("--n: '0'", ["lu", "--n", "0"]), ("--n: 'x'", ["lu", "--n", "8,x"]),
            ("--n: ''", ["lu", "--n", "8,"]), ("--n: '1:2'", ["lu", "--n", "1:2"]), ("empty", ["lu", "--n", "9:2:1"]),
            ("--n: '-4'", ["lu", "--n=-4"]), ("--n: '3000000000'", ["lu", "--n", "3000000000"]),
            ("f16", ["lu", "--scalar", "f16"]), ("--uplo: 'both' is not one of lower, upper", ["cholesky", "--uplo", "both"]), ("--mode", ["lu", "--mode", "x"]),
            ("--device", ["lu", "--device", "tpu"]), ("--count", ["batch", "--count", "0"]),
            ("--against", ["lu", "--against", "magma"]), ("--kind", ["batch", "--kind", "list"]),
            ("needs --kind ragged", ["batch", "--kind", "strided", "--sizes", "uniform"]),
            ("'many' is not one of fixed, uniform, one-large", ["batch", "--sizes", "many"]),
            ("--n: 10 must be in 5..9 where --sizes 5 is the mean", ["batch", "--sizes", "5", "--n", "10"]),
            ("needs --device cuda", ["lu", "--device", "host", "--against", "cusolver"]),
            ("bench lu has no option --count: it belongs to bench batch", ["lu", "--count", "3"]),
            ("lu has no option --preset: it belongs to bench batch", ["lu", "--preset", "fixed"]),
            ("--preset: 'x' is not one of fixed", ["batch", "--preset", "x"]),
            ("--n and --preset exclude each other", ["batch", "--preset", "fixed", "--n", "3"]),
            ("--rhs: it belongs to bench solve, batch and sparse", ["lu", "--rhs", "3"]), ("--energy", ["lu", "--energy", "-1"]),
            ("--wrong", ["lu", "--wrong"]), ("'x' is not one of auto, native, native-columns, native-rows, hybrid", ["lu", "--mode", "x"]),
            ("'x' is not one of auto, native, native-left", ["cholesky", "--mode", "auto,x"]),
            ("'' is not one of", ["cholesky", "--mode", "auto,"]), ("named twice", ["cholesky", "--mode", "host,host"]),
            ("'persistent' needs --device cuda", ["cholesky", "--device", "host", "--mode", "persistent"]),
            ("'native-rows' needs --device cuda", ["lu", "--device", "host", "--mode", "native-rows"]),
            ("'native-rows' is not one of", ["cholesky", "--mode", "native-rows"]),
            ("'cusolver' needs --device cuda", ["cholesky", "--device", "host", "--mode", "cusolver"]),
            ("is not one of auto, native, native-columns, native-rows, hybrid, host", ["lu", "--mode", "native-left"]),
            ("update has no option --mode", ["update", "--mode", "native"]),
            ("--nb: '0'", ["update", "--nb", "0"]),
            ("--nb: 64 leaves no update", ["update", "--n", "64", "--nb", "64"]),
            ("--looking: 'up'", ["update", "--looking", "up"]), ("--leaf: 'x'", ["tile", "--leaf", "x"]),
            ("--nb: it belongs to bench swap and update", ["tile", "--nb", "8"]),
            ("--leaf: it belongs to bench tile", ["update", "--leaf", "8"]),
            ("--each: it belongs to bench update", ["cholesky", "--each"]),
            ("tile has no option --against", ["tile", "--against", "lapack"]),
            ("value has no option --tuning", ["value", "--tuning", "nb=8"]),
            ("--mode: 'hybrid' needs --device cuda", ["sparse", "--device", "host", "--mode", "hybrid"]),
            ("--form: 'x'", ["tile", "--form", "x"]), ("--ib: it belongs to bench tile", ["update", "--ib", "8"]),
            ("'solve' is not one of cholesky, lu", ["inverse", "--method", "solve"]),
            ("--rhs: bench batch has right-hand sides with --method solve", ["batch", "--rhs", "3"]),
            ("--method lu has no triangle", ["solve", "--method", "lu", "--uplo", "upper"]),
            ("bench has no option --n: it comes after the operation", ["--n", "4", "lu"]),
            ("--nb: 20 leaves no pivots: it must be at most --m", ["swap", "--m", "10", "--n", "10", "--nb", "20"]),
            ("--ib: 16 leaves no steps: it must be less than --n and --leaf", ["tile", "--n", "16", "--form", "exclusive"]),
            ("--against lapack: bench inverse --method lu has no peer",
             ["inverse", "--method", "lu", "--device", "host", "--against", "lapack"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.fail_with(2, message, "bench", *arguments).stdout, "")

    def test_each_operation_shows_the_options_that_count_for_it(self):
        everywhere = "device help json power scalar seconds seed"
        for op, own in [("cholesky", "against energy mode n pad tuning uplo"),
                        ("lu", "against energy mode n pad tuning"),
                        ("panel", "against energy m mode n tuning"), ("swap", "against energy m n nb"),
                        ("solve", "against energy method n rhs tuning uplo"),
                        ("inverse", "against energy method n tuning uplo"),
                        ("batch", "against count energy kind method n preset rhs sizes tuning uplo"),
                        ("sparse", "against count energy matrix max-device-bytes mode ordering rhs tuning"), ("value", "energy n uplo"),
                        ("update", "each energy looking n nb tuning uplo"),
                        ("tile", "energy form ib leaf n tuning uplo")]:
            with self.subTest(op=op):
                text = self.succeed("bench", op, "--help")
                self.assertEqual(sorted(re.findall(r"(?m)^  (?:-h,)?--([a-z-]+)", text)),
                                 sorted((everywhere + " " + own).split()))
                self.assertIn("  " + op + " ", self.succeed("bench", "--help"))

    def test_tuning_reaches_the_library(self):
        arguments = ["bench", "cholesky", *QUICK, "--scalar", self.scalar, "--n", "20", "--against", "none"]
        self.fail_with(2, "rubbish", *arguments, "--tuning", "rubbish=1")
        self.assertEqual(self.succeed_json(*arguments, "--tuning", "nb=8")[0]["tuning"], "nb=8")


class Cuda(BenchTest):
    def test_rows_on_the_gpu(self):
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "bench", "cholesky", "--device", "cuda", "--n", "10", "--against", "none")
            self.skipTest("no GPU")
        for op, arguments in [("cholesky", []), ("lu", []), ("solve", ["--rhs", "5"]),
                              ("solve", ["--method", "lu"]), ("batch", ["--count", "20"])]:
            for against in ["cusolver", "lapack", "none"]:
                rows = self.rows_on_gpu(op, "--n", "40,1100", "--against", against, *arguments)
                self.assertEqual(len(rows), 2 * len(self.scalars))
                self.assertEqual({row["peer"] for row in rows}, {None if against == "none" else against})
        for uplo in ["lower", "upper"]:   # made and judged on the device; and, beside a peer there, on the host
            residuals = [row["residual"] for against in ["none", "lapack"] for row in self.rows_on_gpu(
                "cholesky", "--n", "700", "--seed", "5", "--uplo", uplo, "--against", against)]
            self.assertGreater(min(residuals), 0)
            self.assertLess(max(residuals), 5)
        modes = ["auto", "native-left", "native-right", "persistent", "hybrid", "lapack", "cusolver"]
        rows = self.rows_on_gpu("cholesky", "--n", "500", "--mode", "all", devices=("cuda", "host"))
        self.assertEqual([row["mode"] for row in rows], modes * len(self.scalars))
        self.assertEqual({row["mode"] for row in rows if row["device"] == "host"}, {"lapack"})
        self.assertEqual(len(self.rows_on_gpu("update", "--n", "700", "--nb", "256")), 2 * len(self.scalars))
        self.assertEqual(len(self.rows_on_gpu("tile", "--n", "256")), 11 * len(self.scalars))
        for row in self.rows_on_gpu("batch", "--method", "solve", "--n", "200", "--rhs", "16", "--count", "20",
                                    "--tuning", "fused=0"):
            self.assertGreater(row["host_us"], 0)
            self.assertEqual(row["peer"], "cublas")            # its trsmBatched
        for method, peer in [("factor-solve", "cusolver"), ("solve", "cusolver"), ("lu", "cublas")]:
            for row in self.rows_on_gpu("batch", "--method", method, "--n", "20", "--count", "50"):
                self.assertEqual(row["peer"], peer)
                self.assertGreater(row["part_of_copy"], 0)
        for row in self.rows_on_gpu("value", "--n", "100"):
            self.assertEqual((row["peer"], row["device"]), ("host", "cuda"))
        for row in self.rows_on_gpu("batch", "--sizes", "uniform", "--n", "6", "--count", "500"):
            self.assertIsNone(row["peer"])
            self.assertGreater(row["fixed_ratio"], 0)

    def rows_on_gpu(self, op, *arguments, devices=("cuda",)):
        rows = self.succeed_json("bench", op, "--device", "cuda", "--seconds", "0.05",
                                 "--scalar", ",".join(self.scalars), *arguments)
        for row in rows:
            self.assertIn(row["device"], devices)
            self.assertLess(row["residual"] or 0, 30)
        return rows


if __name__ == "__main__":
    program.main()
