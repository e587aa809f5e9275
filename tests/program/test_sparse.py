"""Sparse matrices in the program: generate, analyze, solve and bench sparse."""
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest, parse_array


def read_triangle(text):
    """n and {(row, column): value}, counted from 1, of a coordinate file as the program writes it."""
    lines = text.splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real symmetric", lines[0]
    n, columns, entries = map(int, lines[1].split())
    triangle = {(int(i), int(j)): float(a) for i, j, a in (line.split() for line in lines[2:])}
    assert columns == n and len(triangle) == entries == len(lines) - 2
    return n, triangle


class SparseTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not program.has_scalar("f64"):
            self.skipTest("this build leaves f64 out")

    def generate(self, word, *arguments):
        self.succeed("generate", word, "-o", "A.mtx", *arguments)
        return read_triangle(self.read("A.mtx"))


class Generate(SparseTest):
    def test_sizes(self):
        for word, n, entries in [
            ("poisson2d:5", 25, 25 + 2 * 4 * 5), ("poisson3d:4", 64, 64 + 3 * 3 * 16),
            ("elastic3d:3", 3 * 3 * 16, (9 * 7 * 10 * 10 + 3 * 48) // 2),
            ("shell2d:5", 150, (36 * 13 * 13 + 150) // 2), ("arrow:6", 6, 11), ("band:6:2", 6, 6 + 5 + 4),
            ("poisson3d:1", 1, 1), ("elastic3d:1", 12, 78), ("shell2d:1", 6, 21), ("arrow:1", 1, 1), ("random:1", 1, 1),
        ]:
            with self.subTest(word=word):
                found, triangle = self.generate(word)
                self.assertEqual((found, len(triangle)), (n, entries))
                self.assertTrue(all(i >= j for i, j in triangle))

    def test_the_laplacian(self):
        _, triangle = self.generate("poisson2d:3")
        self.assertEqual({a for (i, j), a in triangle.items() if i == j}, {4.0})
        self.assertEqual(sorted((i, j) for i, j in triangle if i != j),
                         sorted([(j + 1, j) for j in (1, 2, 4, 5, 7, 8)] + [(j + 3, j) for j in range(1, 7)]))

    def test_a_rigid_motion_costs_no_energy(self):
        n, triangle = self.generate("elastic3d:2")
        rows = [[0.0] * 3 for _ in range(n)]
        for (i, j), a in triangle.items():
            rows[i - 1][(j - 1) % 3] += a
            if i != j:
                rows[j - 1][(i - 1) % 3] += a
        free = [r for r in range(n) if r // 3 % 2 == 1]      # the nodes of x = 2 touch no clamped one
        for r in free:
            for direction in range(3):
                self.assertLess(abs(rows[r][direction]), 1e-12)

    def test_the_seed(self):
        _, first = self.generate("shell2d:3", "--seed", "1")
        _, again = self.generate("shell2d:3", "--seed", "1")
        _, other = self.generate("shell2d:3", "--seed", "2")
        self.assertEqual(first, again)
        self.assertEqual(first.keys(), other.keys())
        self.assertNotEqual(first, other)

    def test_json(self):
        (told,) = self.succeed_json("generate", "band:9:2", "--seed", "3", "-o", "A.mtx")
        self.assertEqual(" ".join(told), "matrix family rows columns entries seed file seconds write_seconds bytes commit")
        self.assertEqual((told["matrix"], told["family"], told["rows"], told["columns"]), ("band:9:2", "band", 9, 9))
        self.assertEqual((told["entries"], told["seed"], told["file"]), (9 + 8 + 7, 3, "A.mtx"))
        self.assertEqual(told["bytes"], os.path.getsize(self.path("A.mtx")))
        self.assertLessEqual(told["write_seconds"], told["seconds"])
        self.assertEqual(read_triangle(self.read("A.mtx"))[0], 9)

    def test_a_misspelt_family(self):
        meant = "did you mean poisson3d:4?"
        self.fail_with(2, meant, "generate", "poison3d:4", "-o", "A.mtx")
        self.fail_with(2, meant, "analyze", "poisson3D:4")
        self.fail_with(2, meant, "bench", "sparse", "--matrix", "posison3d:4")
        self.assertNotIn("did you mean", self.fail_with(2, "no such family", "generate", "cube:3", "-o", "A.mtx").stderr)
        self.write("poison3d:4", "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 2\n")
        self.assertIn("1 x 1", self.succeed("analyze", "poison3d:4"))

    def test_errors(self):
        for word, message in [
            ("cube:3", "there is no such family of matrices; there are poisson2d, "),
            ("poisson3d", "its size is missing: poisson3d:M"), ("poisson3d:", "'' is not a whole number in 1..1000"),
            ("poisson3d:0", "'0' is not a whole number"), ("elastic3d:-2", "'-2' is not a whole number"),
            ("poisson3d:3x", "'3x' is not"), ("poisson3d:3:4", "has one parameter, not two"), ("band:9:", "'' is not"),
        ]:
            with self.subTest(word=word):
                self.fail_with(2, message, "generate", word, "-o", "A.mtx")
        self.fail_with(2, "cannot be written", "generate", "arrow:3", "-o", "no/A.mtx")
        self.fail_with(3, "memory", "generate", "elastic3d:1000", "-o", "A.mtx")
        self.assertEqual(self.files(), [])


class Analyze(SparseTest):
    def test_the_table(self):
        text = self.succeed("analyze", "poisson3d:8")
        for line in [r"matrix +poisson3d:8: 512 x 512, 1856 entries", r"ordering +(metis|amd|natural), chosen",
                     r"fill +\d+ nonzeros in L", r"flops +\S+", r"fronts +\d+ in \d+ levels",
                     r"level +fronts +operations +columns", r" +0 +\d+ +\d+ ", r" +k +fronts +Mflop", r"factor +\d",
                     r"all +\d+\.\d+ +100.0"]:
            self.assertRegex(text, "(?m)^" + line)
        for title in ["level", "k", "phase +MiB", "step"]:
            table = re.search(r"(?m)^ *%s .*\n(?:.+\n)+" % title, text).group().splitlines()
            self.assertGreater(len(table), 3)
            self.assertEqual(program.misaligned(table), [])

    def test_json(self):
        for ordering in ["metis", "amd", "natural"]:
            with self.subTest(ordering=ordering):
                (plan,) = self.succeed_json("analyze", "shell2d:8", "--ordering", ordering)
                self.assertEqual((plan["n"], plan["ordering"]), (384, ordering))
                self.assertEqual(sum(level["fronts"] for level in plan["levels"]), plan["fronts"])
                self.assertEqual(sum(level["columns"] for level in plan["levels"]), 384)
                self.assertEqual(sum(width["fronts"] for width in plan["widths"]), plan["fronts"])
                flops = sum(level["flops"] for level in plan["levels"])
                self.assertAlmostEqual(sum(width["flops"] for width in plan["widths"]) / flops, 1)
                self.assertLessEqual(plan["factor_nonzeros"], plan["factor_entries"])
                self.assertLessEqual(plan["flops"], plan["front_flops"] * (1 + 1e-12))
                self.assertGreaterEqual(plan["memory_bytes"]["factor"], plan["factor_bytes"] + plan["stack_bytes"])

    def test_tuning_rows_may_name_an_instruction_set(self):
        fronts = []
        for row in ["host sparse any", "avx512 sparse any", "avx2 sparse any", "baseline sparse any"]:
            self.write("mine.txt", row + " : tiny=200\n")
            environment = dict(os.environ, TRIFACTOR_TUNING=self.path("mine.txt"))
            fronts.append(json.loads(self.succeed("analyze", "poisson3d:8", "--json", env=environment))["fronts"])
        self.assertLess(fronts[0], 10)
        self.assertEqual(fronts[1:].count(fronts[0]), 1, "one of them is in use: %s" % fronts)

    def test_no_fill(self):
        self.succeed("generate", "arrow:50", "-o", "A.mtx")
        (plan,) = self.succeed_json("analyze", "A.mtx", "--ordering", "natural")
        self.assertEqual((plan["entries"], plan["factor_nonzeros"]), (99, 99))
        (plan,) = self.succeed_json("analyze", "band:40:3", "--ordering", "natural")
        self.assertEqual(plan["factor_nonzeros"], plan["entries"])

    def test_a_general_file_is_recognised_by_its_values(self):
        banner = "%%MatrixMarket matrix coordinate real general\n"
        self.write("A.mtx", banner + "2 2 5\n1 1 4\n2 2 4\n2 1 1\n1 2 0.5\n1 2 0.5\n")
        (plan,) = self.succeed_json("analyze", "A.mtx")
        self.assertEqual((plan["entries"], plan["factor_nonzeros"]), (3, 3))
        self.write("A.mtx", banner + "2 2 3\n1 1 4\n2 2 4\n1 2 1\n")
        self.fail_with(2, "A.mtx:2: Cholesky needs a symmetric matrix, but entries (2, 1) and (1, 2) do not agree",
                       "analyze", "A.mtx")

    def test_the_input_may_be_a_pipe(self):
        read, write = os.pipe()
        os.write(write, b"%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 2 4\n2 1 1\n")
        os.close(write)
        with os.fdopen(read) as file:
            self.assertIn("3 nonzeros in L", self.succeed("analyze", "/dev/stdin", stdin=file))

    def test_the_picture(self):
        for word in ["poisson3d:6", "arrow:9", "arrow:1"]:
            self.succeed("analyze", word, "--picture", "tree.svg")
            (plan,) = self.succeed_json("analyze", word)
            tree = xml.etree.ElementTree.fromstring(self.read("tree.svg"))
            circles = tree.findall("{http://www.w3.org/2000/svg}circle")
            self.assertEqual(len(circles), plan["fronts"])

    def test_errors(self):
        self.fail_with(2, "nothing.mtx: No such file", "analyze", "nothing.mtx")
        self.fail_with(2, "--seed is of a generated matrix: A.mtx is a file", "analyze", "A.mtx", "--seed", "3")
        self.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n1 1\n1\n")
        self.fail_with(2, "A.mtx:2: a sparse matrix is a coordinate file", "analyze", "A.mtx")
        self.fail_with(2, "--ordering", "analyze", "arrow:3", "--ordering", "best")
        self.fail_with(2, "poisson3d:0: '0' is not", "analyze", "poisson3d:0")
        self.fail_with(2, "cannot be written", "analyze", "arrow:3", "--picture", "no/tree.svg")


class Solve(SparseTest):
    def test_a_generated_file(self):
        for word in ["poisson3d:10", "elastic3d:6", "shell2d:15", "random:1500"]:
            with self.subTest(word=word):
                self.generate(word)
                (done,) = self.succeed_json("solve", "A.mtx", "-o", "x.mtx")
                self.assertEqual(done["method"], "sparse" if done["n"] >= 1000 else "cholesky")
                self.assertLess(done["residual"], 30)
                self.assertLess(done["error"], 1e-8)
                X = parse_array(self.read("x.mtx"))
                self.assertLess(max(abs(x[0] - 1) for x in X), 1e-8)

    def test_prints_what_it_did(self):
        self.generate("poisson3d:10")
        text = self.succeed("solve", "A.mtx", "--device", "host")
        for line in [r"method +sparse Cholesky: A is symmetric with a positive diagonal, and sparse",
                     r"plan +\w+ ordering, \d+ nonzeros in L", r"analyze +\d", r"factor +\d", r"solve +\d",
                     r"residual +\d"]:
            self.assertRegex(text, "(?m)^" + line)

    def test_the_method_that_was_asked_for(self):
        self.generate("poisson2d:5")
        for method in ["sparse", "sparse-lu", "cholesky", "lu"]:
            (done,) = self.succeed_json("solve", "A.mtx", "--method", method)
            self.assertEqual(done["method"], method)
            self.assertLess(done["error"], 1e-12)

    def test_orderings_and_refinement(self):
        self.generate("shell2d:4")
        for ordering in ["metis", "amd", "natural"]:
            (done,) = self.succeed_json("solve", "A.mtx", "--ordering", ordering)
            self.assertEqual((done["method"], done["ordering"], done["refine_steps"]), ("sparse", ordering, None))
        (done,) = self.succeed_json("solve", "A.mtx", "--refine")
        self.assertEqual(done["method"], "sparse")
        self.assertGreaterEqual(done["refine_steps"], 0)
        self.assertLess(done["backward_error"], 1e-15)
        text = self.succeed("solve", "A.mtx", "--refine", "--ordering", "natural")
        self.assertRegex(text, r"(?m)^refined +\d+ steps, backward error \S+")
        self.assertRegex(text, r"(?m)^plan +natural ordering")

    def test_what_the_dense_solvers_do_not_have(self):
        self.generate("poisson2d:3")
        self.fail_with(2, "--refine belongs to the sparse solver, which does not take this matrix: --method cholesky", "solve",
                       "A.mtx", "--method", "cholesky", "--refine")
        self.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n1 1\n1\n")
        self.fail_with(2, "--ordering belongs to the sparse solver, which does not take this matrix: it is an array", "solve",
                       "A.mtx", "--ordering", "amd")
        self.fail_with(2, "--ordering", "solve", "A.mtx", "--ordering", "best")

    def test_what_is_symmetric_up_to_rounding_stays_sparse(self):
        n, triangle = self.generate("poisson3d:10")
        lines = ["%d %d %r\n" % (i, j, a) for (i, j), a in triangle.items()]
        above = ["%d %d %r\n" % (j, i, a) for (i, j), a in triangle.items() if i != j]
        place, (i, j) = next((k, p) for k, p in enumerate(triangle) if p[0] != p[1])
        lines[place] = "%d %d %r\n" % (i, j, triangle[i, j] * (1 + 2.0 ** -52))
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n" % (n, n, len(lines + above)) +
                   "".join(lines + above))
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
        self.assertEqual((done["method"], done["evened"]["pairs"]), ("sparse", 1))
        self.assertEqual(done["evened"]["largest_pair"], 2.0 ** -52)
        (plan,) = self.succeed_json("analyze", "A.mtx")
        self.assertEqual((plan["entries"], plan["evened_pairs"]), (len(triangle), 1))
        self.assertRegex(self.succeed("analyze", "A.mtx"), r"(?m)^symmetry +1 pair of entries differs by rounding")

    def test_right_hand_sides(self):
        n, triangle = self.generate("poisson2d:3")
        X = [[float(i), 1.0 - i] for i in range(n)]
        B = [[0.0, 0.0] for _ in range(n)]
        for (i, j), a in triangle.items():
            for c in range(2):
                B[i - 1][c] += a * X[j - 1][c]
                if i != j:
                    B[j - 1][c] += a * X[i - 1][c]
        self.write("b.mtx", program.matrix_market(B, "array", "real", "general"))
        (done,) = self.succeed_json("solve", "A.mtx", "--rhs", "b.mtx", "--method", "sparse", "-o", "x.mtx")
        self.assertEqual(done["nrhs"], 2)
        for found, expected in zip(parse_array(self.read("x.mtx")), X):
            self.assertLess(max(abs(f - e) for f, e in zip(found, expected)), 1e-12)

    def write_diagonal(self, n, values, banner="symmetric", more=""):
        """A unit matrix but for some entries on the diagonal."""
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real %s\n%d %d %d\n" % (banner, n, n, n + more.count("\n")) +
                   "".join("%d %d %r\n" % (i, i, values.get(i, 1.0)) for i in range(1, n + 1)) + more)

    def test_what_is_not_positive_definite_goes_to_sparse_lu(self):
        self.write_diagonal(1100, {7: -1.0})
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
        self.assertEqual((done["method"], done["why"]), ("sparse-lu", "the diagonal of A is not positive at row 7"))
        self.assertEqual((done["factor_nonzeros"], done["ordering"], done["error"]), (1100, "colamd", 0))
        self.write_diagonal(1100, {}, more="9 3 2.0\n")          # [1 2; 2 1]
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
        self.assertEqual(done["method"], "sparse-lu")
        self.assertIn(done["not_positive_definite_at"], [3, 9])
        text = self.succeed("solve", "A.mtx", "--device", "host")
        self.assertRegex(text, r"(?m)^method +sparse Cholesky: .*\n(.*\n)*method +sparse LU: A is not positive definite: the pivot of row")
        self.write_diagonal(1100, {}, "general", more="9 3 2.0\n")
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
        self.assertEqual((done["method"], done["why"]), ("sparse-lu", "A is not symmetric"))

    def write_grid(self, m, diagonal, skew):
        """The 5-point stencil on an m x m grid, with -1 - skew to the left and -1 + skew to the right."""
        entries = []
        for k in range(m * m):
            entries.append((k, k, diagonal))
            for other, value in [(k - 1, -1.0 - skew), (k + 1, -1.0 + skew), (k - m, -1.0), (k + m, -1.0)]:
                if 0 <= other < m * m and (k // m == other // m or k % m == other % m):
                    entries.append((other, k, value))
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n" % (m * m, m * m, len(entries)) +
                   "".join("%d %d %r\n" % (i + 1, j + 1, a) for i, j, a in entries))

    def test_sparse_lu_of_grids(self):
        for diagonal, skew, why in [(3.3, 0.0, "A is not positive definite"), (4.0, 0.5, "A is not symmetric")]:
            self.write_grid(40, diagonal, skew)
            (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
            self.assertEqual(done["method"], "sparse-lu")
            self.assertIn(why, done["why"])
            self.assertLess(done["residual"], 30)
            self.assertLess(done["error"], 1e-9)
            for ordering in ["colamd", "amd", "natural"]:
                (done,) = self.succeed_json("solve", "A.mtx", "--device", "host", "--method", "sparse-lu", "--refine",
                                            "--ordering", ordering)
                self.assertEqual((done["ordering"], done["why"]), (ordering, "as asked"))
                self.assertLess(done["backward_error"], 1e-15)

    def test_no_dense_matrix_of_a_large_sparse_one(self):
        n = 200000                                          # 320 GB as a dense one
        lines = ["%d %d 2.5\n" % (i, i) for i in range(1, n + 1)]
        lines += ["%d %d -1\n%d %d -0.5\n" % (i, i + 1, i + 1, i) for i in range(1, n)]
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n" % (n, n, 3 * n - 2) + "".join(lines))
        (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
        self.assertEqual(done["method"], "sparse-lu")
        self.assertLess(done["error"], 1e-14)

    def test_sparse_lu_takes_a_shift_and_right_hand_sides(self):
        self.write_grid(4, -1.0, 0.25)
        X = [[float(i), 1.0] for i in range(16)]
        self.write("x.mtx", program.matrix_market(X, "array", "real", "general"))
        (plain,) = self.succeed_json("solve", "A.mtx", "--rhs", "x.mtx", "-o", "dense.mtx", "--method", "lu", "--shift", "5")
        (done,) = self.succeed_json("solve", "A.mtx", "--rhs", "x.mtx", "-o", "y.mtx", "--method", "sparse-lu", "--shift", "5")
        self.assertEqual((done["method"], done["nrhs"], plain["method"]), ("sparse-lu", 2, "lu"))
        for found, expected in zip(parse_array(self.read("y.mtx")), parse_array(self.read("dense.mtx"))):
            self.assertLess(max(abs(f - e) for f, e in zip(found, expected)), 1e-12)

    def test_sparse_lu_fails_with_the_reason(self):
        self.write_diagonal(5, {4: 0.0}, "general")
        self.fail_with(1, "A.mtx: A is singular: the pivot of column 4 is zero", "solve", "A.mtx", "--method", "sparse-lu")
        self.write_diagonal(5, {4: float("nan")}, "general")
        self.fail_with(1, "A.mtx: the solution is not finite at row 4", "solve", "A.mtx", "--method", "sparse-lu")
        self.fail_with(2, "A.mtx: --ordering metis belongs to Cholesky; sparse LU has colamd, amd, natural", "solve", "A.mtx",
                       "--method", "sparse-lu", "--ordering", "metis")
        self.fail_with(2, "--ordering: 'colamd' is not one of auto, metis, amd, natural", "solve", "A.mtx", "--method", "sparse",
                       "--ordering", "colamd")
        self.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n1 1\n1\n")
        self.fail_with(2, "A.mtx:2: the sparse solver takes coordinate files", "solve", "A.mtx", "--method", "sparse-lu")

    def test_complex_sparse_lu(self):
        if not program.has_scalar("c64"):
            self.skipTest("this build leaves c64 out")
        entries = ["%d %d %r 1.0\n" % (i, i, -2.0 + i % 3) for i in range(1, 1201)] + ["%d %d 0.0 1.0\n" % (i + 1, i) for i in range(1, 1200)]
        for symmetry in ["general", "symmetric", "skew-symmetric", "hermitian"]:
            lines = [line.replace(" 1.0\n", " 0.0\n") if symmetry == "hermitian" and k < 1200 else line for k, line in enumerate(entries)]
            lines = lines[1200:] if symmetry == "skew-symmetric" else lines
            self.write("A.mtx", "%%%%MatrixMarket matrix coordinate complex %s\n1200 1200 %d\n" % (symmetry, len(lines)) + "".join(lines))
            (done,) = self.succeed_json("solve", "A.mtx", "--device", "host")
            self.assertEqual((done["method"], done["scalar"]), ("sparse-lu", "c64"))
            self.assertLess(done["residual"], 30)

    def test_sparse_that_was_asked_for_fails_with_the_reason(self):
        self.write_diagonal(5, {4: -1.0})
        self.fail_with(1, "A.mtx: A is not positive definite: the pivot of row 4", "solve", "A.mtx", "--method", "sparse")
        self.write_diagonal(5, {}, "general", more="3 2 1.0\n")
        self.fail_with(2, "A.mtx:2: Cholesky needs a symmetric matrix, but entries (3, 2) and (2, 3) do not agree",
                       "solve", "A.mtx", "--method", "sparse")
        self.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n1 1\n1\n")
        self.fail_with(2, "A.mtx:2: the sparse solver takes coordinate files", "solve", "A.mtx", "--method", "sparse")


class Bench(SparseTest):
    def test_a_row_for_each_phase(self):
        rows = self.succeed_json("bench", "sparse", "--matrix", "poisson3d:6,shell2d:6", "--seconds", "0.02",
                                 "--against", "none")
        self.assertEqual([row["phase"] for row in rows], 2 * ["analyze", "construct", "factor", "refactor", "solve"])
        self.assertEqual({row["matrix"] for row in rows}, {"poisson3d:6", "shell2d:6"})
        for row in rows:
            self.assertGreater(row["seconds"], 0)
            if row["phase"] not in ["analyze", "construct"]:
                self.assertLess(row["residual"], 30)
                self.assertGreater(row["gflops"], 0)
        text = self.succeed("bench", "sparse", "--matrix", "poisson3d:6", "--seconds", "0.02", "--against", "none")
        self.assertEqual(len(re.findall("(?m)^poisson3d:6 ", text)), 5)

    def test_the_table_is_aligned_whatever_the_names(self):
        name = "a_file_with_a_long_name.mtx"
        self.succeed("generate", "poisson2d:3", "-o", name)
        _, *table = self.succeed("bench", "sparse", "--matrix", name + ",arrow:3", "--seconds", "0.02", "--against", "none",
                                 "--device", "host").splitlines()
        self.assertEqual((len(table), program.misaligned(table)), (11, []))

    def test_against_cholmod(self):
        if not os.access(os.path.join(os.path.dirname(program.PROGRAM), "trifactor_cholmod"), os.X_OK):
            self.fail_with(2, "libsuitesparse-dev", "bench", "sparse", "--against", "cholmod")
            self.skipTest("CHOLMOD was not built")
        for peer in ["cholmod", "cholmod-given"]:
            rows = self.succeed_json("bench", "sparse", "--matrix", "poisson3d:6", "--seconds", "0.02", "--against", peer)
            for row in rows:
                if row["phase"] == "construct":  # CHOLMOD has no such phase
                    self.assertIsNone(row["peer"])
                    continue
                self.assertEqual(row["peer"], peer)
                self.assertGreater(row["ratio"], 0)
                self.assertGreater(row["peer_memory_bytes"], 0)

    def write_overflowing(self):
        """A matrix that is positive definite, and whose solutions are infinite: their residuals are NaN."""
        self.write("tiny.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1e-310\n2 2 1e-310\n")

    def test_what_is_not_a_number_is_no_result(self):
        self.write_overflowing()
        self.fail_with(1, "nan is not below 30", "bench", "sparse", "--matrix", "tiny.mtx", "--count", "2",
                       "--device", "host", "--seconds", "0")

    def test_a_peer_without_a_finite_result_keeps_its_rows(self):
        if not os.access(os.path.join(os.path.dirname(program.PROGRAM), "trifactor_cholmod"), os.X_OK):
            self.skipTest("CHOLMOD was not built")
        self.write_overflowing()
        done = self.fail_with(1, "nan is not below 30", "bench", "sparse", "--matrix", "tiny.mtx", "--device",
                              "host", "--seconds", "0", "--against", "cholmod", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(row["peer_residual"], row["peer_seconds"] is None) for row in rows],
                         [(None, row["phase"] == "construct") for row in rows])
        self.assertEqual(len(rows), 5)

    def test_rows_say_how_much_of_a_device_they_may_take(self):
        for asked in [None, 2000000000]:
            rows = self.succeed_json("bench", "sparse", "--matrix", "poisson2d:9", "--device", "host", "--seconds", "0",
                                     "--against", "none", *(["--max-device-bytes", "2e9"] if asked else []))
            self.assertEqual({row["max_device_bytes"] for row in rows}, {asked})

    def test_several_numbers_of_right_hand_sides(self):
        rows = self.succeed_json("bench", "sparse", "--matrix", "poisson3d:5", "--seconds", "0.02", "--rhs", "1,3", "--device", "host",
                                 "--against", "none")
        self.assertEqual([row["nrhs"] for row in rows if row["phase"] == "solve"], [1, 3])
        self.assertGreater(rows[0]["memory_bytes"], 0)
        if not os.access(os.path.join(os.path.dirname(program.PROGRAM), "trifactor_cudss"), os.X_OK):
            self.fail_with(2, "where trifactor is built with cuDSS", "bench", "sparse", "--against", "cudss")

    def test_many_matrices_of_one_pattern(self):
        rows = self.succeed_json("bench", "sparse", "--matrix", "poisson3d:5", "--seconds", "0.02", "--rhs", "1,3", "--device", "host",
                                 "--count", "9")
        self.assertEqual([(row["phase"], row["nrhs"]) for row in rows],
                         [("construct", 1), ("refactor", 1), ("solve", 1), ("solve", 3)])
        for row in rows:
            self.assertEqual(row["count"], 9)
            if row["phase"] != "construct":
                self.assertEqual(row["peer"], "one by one")
                self.assertGreater(row["ratio"], 0)
        self.assertLess(rows[-1]["residual"], 30)
        self.fail_with(2, "--against and --count exclude each other", "bench", "sparse", "--count", "2", "--against", "none")
        self.fail_with(2, "--count: Value 0 not in range", "bench", "sparse", "--count", "0")

    def test_the_table_of_orderings(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/compare_orderings.py")
        done = subprocess.run([sys.executable, script, program.PROGRAM, "poisson2d:5", "--rounds", "1", "--seconds", "0.01"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^matrix +AMD +METIS +Auto +chosen +ratio\npoisson2d:5( +\d+\.\d\d){3} +amd +\d+\.\d\d\n$")

    def test_errors(self):
        self.fail_with(2, "bench sparse has no option --n: it belongs to bench cholesky, ", "bench", "sparse", "--n", "5")
        self.fail_with(2, "--matrix: it belongs to bench sparse", "bench", "lu", "--matrix", "arrow:3")
        self.fail_with(2, "is not one of cholmod", "bench", "sparse", "--against", "lapack")
        if program.has_scalar("f32") and os.access(os.path.join(os.path.dirname(program.PROGRAM), "trifactor_cholmod"), os.X_OK):
            self.fail_with(2, "--against cholmod: it is measured in f64", "bench", "sparse", "--scalar", "f32", "--against",
                           "cholmod")
        self.fail_with(2, "'cholmod' is not one of lapack", "bench", "lu", "--against", "cholmod")


if __name__ == "__main__":
    program.main()
