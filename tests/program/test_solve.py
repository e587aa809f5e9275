"""trifactor solve: every form of a Matrix Market file, and what it says and leaves behind."""
import json
import math
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest, matrix_market, parse_array, product

GENERAL = [[0, 2, -3], [4, 1, 0], [1, 0, 5]]
POSITIVE = [[4, 1, 0], [1, 5, 2], [0, 2, 6]]
INDEFINITE = [[1, 2, 0], [2, 1, 0], [0, 0, 1]]         # a positive diagonal, but Cholesky fails at row 2
SKEW = [[0, -2, 3, 1], [2, 0, -1, 5], [-3, 1, 0, 4], [-1, -5, -4, 0]]
ONES = [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
SYMMETRIC_ONES = [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
HERMITIAN = [[4, 1 - 2j, 0.5j], [1 + 2j, 6, 2], [-0.5j, 2, 5]]
COMPLEX = [[1j, 2, 0], [3, 1 - 1j, 1], [0, 4j, 2]]
COMPLEX_SYMMETRIC = [[1j, 2, 1 + 1j], [2, 3, 0], [1 + 1j, 0, 5]]
COMPLEX_SKEW = [[0, -2j], [2j, 0]]

FORMS = [
    ("real", "general", GENERAL, "lu"), ("real", "symmetric", POSITIVE, "cholesky"),
    ("real", "general", POSITIVE, "cholesky"), ("real", "skew-symmetric", SKEW, "lu"),
    ("integer", "general", GENERAL, "lu"), ("integer", "symmetric", POSITIVE, "cholesky"),
    ("integer", "skew-symmetric", SKEW, "lu"), ("complex", "general", COMPLEX, "lu"),
    ("complex", "general", HERMITIAN, "cholesky"), ("complex", "hermitian", HERMITIAN, "cholesky"),
    ("complex", "symmetric", COMPLEX_SYMMETRIC, "lu"), ("complex", "skew-symmetric", COMPLEX_SKEW, "lu"),
    ("pattern", "general", ONES, "lu"), ("pattern", "symmetric", SYMMETRIC_ONES, "lu"),
]


class SolveTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not (program.has_scalar("f64") or program.has_scalar("c64")):
            self.skipTest("this build leaves f64 and c64 out")

    def need_complex(self):
        if not program.has_scalar("c64"):
            self.skipTest("this build leaves c64 out")

    def write_matrix(self, name, rows, format="array", field="real", symmetry="general"):
        return self.write(name, matrix_market(rows, format, field, symmetry))

    def solution(self, *arguments):
        """Solves and returns what was printed as JSON, and the solution."""
        (printed,) = self.succeed_json("solve", *arguments, "-o", "x.mtx")
        return printed, parse_array(self.read("x.mtx"))

    def assert_close(self, X, expected):
        self.assertEqual((len(X), len(X[0])), (len(expected), len(expected[0])))
        for x, e in zip(sum(X, []), sum(expected, [])):
            self.assertLess(abs(x - e), 1e-12, X)


class Forms(SolveTest):
    def test_every_form_solves(self):
        for format in ["array", "coordinate"]:
            for field, symmetry, rows, method in FORMS:
                if (format, field) == ("array", "pattern"):
                    continue
                with self.subTest(format=format, field=field, symmetry=symmetry):
                    if field == "complex":
                        self.need_complex()
                    X = [[i + 1 - 0.5j, 2.0 - i] if field == "complex" else [i + 1, 2.0 - i] for i in range(len(rows))]
                    self.write_matrix("A.mtx", rows, format, field, symmetry)
                    self.write_matrix("b.mtx", product(rows, X), "array", "complex" if field == "complex" else "real")
                    printed, solution = self.solution("A.mtx", "--rhs", "b.mtx")
                    self.assert_close(solution, X)
                    self.assertEqual(printed["form"], "%s %s %s" % (format, field, symmetry))
                    self.assertEqual(printed["method"], method)
                    self.assertLess(printed["residual"], 30)

    def solve_text(self, text, X):
        self.write("A.mtx", text)
        _, solution = self.solution("A.mtx", "--rhs", "b.mtx")
        self.assert_close(solution, X)

    def test_any_spacing_case_comments_and_line_ends(self):
        X = [[1.0], [-2.0]]
        self.write_matrix("b.mtx", product([[2, 1], [0, 4]], X))
        banner = "%%MatrixMarket matrix coordinate real general\n"
        for text in [
            "%%matrixmarket MATRIX Coordinate REAL GENERAL\n2 2 3\n1 1 2\n1 2 1\n2 2 4\n",
            "%%MatrixMarket\tmatrix   coordinate\treal  general  \n 2\t2  3 \n\t1 1\t2.0\n  1 2 1e0\n2   2 +4.\n",
            banner.replace("\n", "\r\n") + "2 2 3\r\n1 1 2\r\n\r\n% c\r\n1 2 1\r\n2 2 4\r\n",
            banner + "% one\n%\n\n   \n2 2 3 % sizes\n%two\n1 1 2\n\n 1 2 1%three\n2 2 4\n\n% the end\n\n",
            banner + "2 2 3\n1 1 2\n1 2 1\n2 2 4",
            "\ufeff" + banner + "2 2 3\n1 1 2\n1 2 1\n2 2 4\n",
            banner + "2 2 5\n1 1 2\n1 2 3\n2 2 1\n1 2 -2\n2 2 3\n",
            banner + "2 2 3\n1 1 2.0D+00\n1 2 10d-1\n2 2 0.4D1\n",
            banner + "2 2 4\n1 1 2\n1 2 1\n2 1 1e-999\n2 2 4\n",
        ]:
            with self.subTest(text=text):
                self.solve_text(text, X)

    def test_repeated_entries_of_a_symmetric_file_are_summed_in_both_triangles(self):
        self.write_matrix("b.mtx", [[5], [10]])
        self.solve_text("%%MatrixMarket matrix coordinate integer symmetric\n2 2 4\n1 1 4\n2 1 3\n2 1 -2\n2 2 9\n",
                        [[1.0], [1.0]])

    def test_one_by_one_and_nothing(self):
        self.write_matrix("A.mtx", [[4]])
        printed, X = self.solution("A.mtx")
        self.assertEqual((X, printed["error"]), ([[1.0]], 0))
        for text in ["%%MatrixMarket matrix coordinate real general\n0 0 0\n",
                     "%%MatrixMarket matrix array real symmetric\n0 0\n",
                     "%%MatrixMarket matrix array real skew-symmetric\n0 0\n"]:
            self.write("A.mtx", text)
            (printed,) = self.succeed_json("solve", "A.mtx", "-o", "x.mtx")
            self.assertEqual((printed["n"], printed["residual"], printed["error"]), (0, 0, 0))
            self.assertEqual(self.read("x.mtx").splitlines()[1], "0 1")

    def test_a_complex_right_hand_side_makes_a_real_matrix_complex(self):
        self.need_complex()
        X = [[1j], [2], [3 - 1j]]
        self.write_matrix("A.mtx", POSITIVE)
        self.write_matrix("b.mtx", product(POSITIVE, X), field="complex")
        printed, solution = self.solution("A.mtx", "--rhs", "b.mtx")
        self.assert_close(solution, X)
        self.assertEqual(printed["scalar"], "c64")

    def test_a_sparse_right_hand_side_of_no_columns_and_of_many(self):
        self.write_matrix("A.mtx", POSITIVE)
        self.write("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 70 2\n1 1 4\n2 1 1\n")
        printed, X = self.solution("A.mtx", "--rhs", "b.mtx")
        self.assert_close(X, [[1.0 if (i, j) == (0, 0) else 0.0 for j in range(70)] for i in range(3)])
        self.assertEqual(printed["nrhs"], 70)
        self.write("b.mtx", "%%MatrixMarket matrix array real general\n3 0\n")
        (printed,) = self.succeed_json("solve", "A.mtx", "--rhs", "b.mtx", "-o", "x.mtx")
        self.assertEqual(self.read("x.mtx").splitlines()[1:], ["3 0"])

    def test_the_solution_is_written_with_all_its_digits(self):
        B = [[1 / 3, 2 ** 0.5, -1e-300, 1.7976931348623157e308]]
        self.write_matrix("A.mtx", [[1]])
        self.write_matrix("b.mtx", B)
        _, X = self.solution("A.mtx", "--rhs", "b.mtx")
        self.assertEqual(X, B)


class Method(SolveTest):
    def test_auto_looks_at_the_values(self):
        for rows, field, method, why in [
            (POSITIVE, "real", "cholesky", "symmetric with a positive diagonal"),
            (GENERAL, "real", "lu", "not symmetric"),
            ([[0, 1], [1, 0]], "real", "lu", "not positive at row 1"),
            ([[1, 0], [0, -1]], "real", "lu", "not positive at row 2"),
            (HERMITIAN, "complex", "cholesky", "hermitian with a positive diagonal"),
            (COMPLEX_SYMMETRIC, "complex", "lu", "not hermitian"),
            ([[2 + 1j, 0], [0, 1]], "complex", "lu", "not hermitian"),
        ]:
            with self.subTest(rows=rows):
                if field == "complex":
                    self.need_complex()
                self.write_matrix("A.mtx", rows, field=field)
                printed, _ = self.solution("A.mtx")
                self.assertEqual((printed["method"], printed["not_positive_definite_at"]), (method, None))
                if field == "complex" or program.has_scalar("f64"):
                    self.assertIn(why, printed["why"])

    def test_falls_back_to_lu_and_says_so(self):
        self.write_matrix("A.mtx", INDEFINITE, "coordinate", "real", "symmetric")
        printed, X = self.solution("A.mtx")
        self.assert_close(X, [[1], [1], [1]])
        self.assertEqual((printed["method"], printed["not_positive_definite_at"]), ("lu", 2))
        text = self.succeed("solve", "A.mtx")
        self.assertRegex(text, r"(?m)^method +Cholesky: ")
        self.assertRegex(text, r"not positive definite \(the pivot of row 2 .*fell back to LU")

    def test_cholesky_that_was_asked_for_fails_with_the_row(self):
        self.write_matrix("A.mtx", INDEFINITE)
        self.fail_with(1, "A.mtx: A is not positive definite: the pivot of row 2", "solve", "A.mtx",
                       "--method", "cholesky")

    def test_cholesky_that_was_asked_for_needs_symmetry(self):
        self.write_matrix("A.mtx", [[1, 2], [3, 9]])
        self.fail_with(2, "A.mtx:2: Cholesky needs a ", "solve", "A.mtx", "--method", "cholesky")

    def test_lu_that_was_asked_for_is_taken(self):
        self.write_matrix("A.mtx", POSITIVE)
        printed, X = self.solution("A.mtx", "--method", "lu")
        self.assertEqual(printed["method"], "lu")
        self.assert_close(X, [[1], [1], [1]])

    def test_a_singular_matrix_fails_with_the_row(self):
        self.write_matrix("A.mtx", [[1, 2, 3], [2, 4, 6], [0, 0, 1]])
        self.fail_with(1, "A.mtx: A is singular: the pivot of row 2", "solve", "A.mtx")

    def test_what_is_not_finite_is_read_and_fails_with_the_row(self):
        entries = "2 2 3\n1 1 1\n2 1 1\n2 2 "
        for value in ["nan", "NaN", "inf", "-Inf", "INFINITY"]:
            self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n" + entries + value + "\n")
            self.fail_with(1, "row", "solve", "A.mtx", "--method", "lu", "-o", "x.mtx")
            self.assertEqual(self.files(), ["A.mtx"])
        self.write("A.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n0\nnan\n")
        self.fail_with(1, "row 2", "solve", "A.mtx", "--method", "cholesky")


class Rounding(SolveTest):
    """What is symmetric or hermitian up to rounding, 16 eps sqrt(|a_ii a_jj|), is taken as such."""

    def test_the_mean_of_entries_that_differ_by_rounding(self):
        eps = 2.0 ** -52
        for i, j, factor, method in [(0, 1, 1, "cholesky"), (2, 1, 15.9, "cholesky"), (2, 1, 17, "lu"), (1, 0, -15.9, "cholesky")]:
            with self.subTest(i=i, j=j, factor=factor):
                rows = [[float(a) for a in row] for row in [[4, 1, 0], [1, 4, 2], [0, 2, 4]]]
                rows[i][j] += factor * eps * 4
                self.write_matrix("A.mtx", rows)
                printed, X = self.solution("A.mtx")
                self.assertEqual(printed["method"], method)
                self.assert_close(X, [[1], [1], [1]])
                if method == "lu":
                    self.assertIsNone(printed["evened"])
                    continue
                self.assertEqual((printed["evened"]["pairs"], printed["evened"]["diagonals"]), (1, 0))
                self.assertEqual(printed["evened"]["largest_pair"], abs(rows[i][j] - rows[j][i]))
                self.assertRegex(self.succeed("solve", "A.mtx"),
                                 r"(?m)^symmetry +1 pair of entries differs by rounding, by up to \S+: the mean is taken$")
        self.write_matrix("A.mtx", POSITIVE)
        printed, _ = self.solution("A.mtx")
        self.assertIsNone(printed["evened"])

    def test_one_side_may_be_missing(self):
        banner = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n2 2 1\n"
        for place, value, method in [("1 2", 1e-15, "sparse"), ("2 1", 1e-15, "sparse"), ("1 2", 1e-14, "lu")]:
            self.write("A.mtx", banner + "%s %r\n" % (place, value))
            printed, _ = self.solution("A.mtx", *(["--refine"] if method == "sparse" else []))
            self.assertEqual(printed["method"], method)
            if method == "sparse":
                self.assertEqual((printed["evened"]["pairs"], printed["factor_nonzeros"]), (1, 3))

    def test_infinite_and_tiny_diagonals_allow_nothing(self):
        for diagonal in ["inf", "0", "1e-300"]:
            self.write("A.mtx", "%%%%MatrixMarket matrix array real general\n2 2\n%s\n1\n2\n%s\n" % (diagonal, diagonal))
            self.fail_with(2, "entries (2, 1) and (1, 2) do not agree", "solve", "A.mtx", "--method", "cholesky")

    def test_imaginary_parts_on_the_diagonal(self):
        self.need_complex()
        for format in ["array", "coordinate"]:
            for symmetry in ["hermitian", "general"]:
                for more in [[], ["--refine"]] if format == "coordinate" else [[]]:
                    with self.subTest(format=format, symmetry=symmetry, more=more):
                        rows = [list(row) for row in HERMITIAN]
                        rows[1][1] += 1e-16j
                        self.write_matrix("A.mtx", rows, format, "complex", symmetry)
                        printed, X = self.solution("A.mtx", *more)
                        self.assertEqual(printed["method"], "sparse" if more else "cholesky")
                        self.assertEqual(printed["evened"]["diagonals"], 1)
                        self.assertEqual(printed["evened"]["largest_diagonal"], 1e-16)
                        self.assert_close(X, [[1], [1], [1]])
                        self.assertRegex(self.succeed("solve", "A.mtx", *more), r"(?m)^symmetry +imaginary parts of the diagonal "
                                                                                r"are rounding in 1 row, up to 1e-16: dropped$")
        rows[1][1] = 6 + 2e-14j
        self.write_matrix("A.mtx", rows, "array", "complex", "hermitian")
        self.fail_with(2, "A.mtx:6: diagonal entry 2 of a hermitian matrix is not real: its imaginary part is 2e-14, more than "
                          "1.8e-15 times its modulus", "solve", "A.mtx")


class Shift(SolveTest):
    def test_a_multiple_of_the_unit_matrix_is_added(self):
        shifted = [[a + 2.5 * (i == j) for j, a in enumerate(row)] for i, row in enumerate(INDEFINITE)]
        X = [[1.0], [-2.0], [3.0]]
        self.write_matrix("b.mtx", product(shifted, X))
        for format, more, method in [("array", [], "cholesky"), ("coordinate", ["--method", "lu"], "lu"),
                                     ("coordinate", ["--method", "sparse"], "sparse")]:
            self.write_matrix("A.mtx", INDEFINITE, format, "real", "symmetric")
            printed, solution = self.solution("A.mtx", "--rhs", "b.mtx", "--shift", "2.5", *more)
            self.assert_close(solution, X)
            self.assertEqual((printed["method"], printed["shift"]), (method, 2.5))
        self.assertRegex(self.succeed("solve", "A.mtx", "--shift", "2.5"), r"(?m)^shift +2.5: A \+ 2.5 I")
        self.fail_with(2, "--shift: inf is not a finite number", "solve", "A.mtx", "--shift", "inf")

    def test_a_diagonal_that_is_not_stored(self):
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 0.5\n")
        printed, X = self.solution("A.mtx", "--shift", "1", "--method", "sparse")
        self.assert_close(X, [[1], [1], [1]])


class Condition(SolveTest):
    """The condition is estimated, and a solution without digits comes with a warning and exit status 0."""

    def test_the_digits_that_are_left(self):
        self.write_matrix("A.mtx", [[1, 0], [0, 1]])
        (printed,) = self.succeed_json("solve", "A.mtx")
        self.assertEqual((printed["rcond"], printed["warning"]), (1, None))
        self.assertIn("condition 1.0e+00  estimate, 1-norm: about 16 of 16 digits can be trusted\n", self.succeed("solve", "A.mtx"))
        for arguments in [[], ["--method", "lu"]]:
            self.write_matrix("A.mtx", [[1, 0], [0, 2.0 ** -27]])
            (printed,) = self.succeed_json("solve", "A.mtx", *arguments)
            self.assertAlmostEqual(printed["rcond"] * 2.0 ** 27, 1, 12)
            self.assertIn("condition 1.3e+08  estimate, 1-norm: about 7 of 16 digits", self.succeed("solve", "A.mtx", *arguments))
        self.need_complex()
        self.write_matrix("A.mtx", HERMITIAN, "coordinate", "complex", "hermitian")
        for method in ["cholesky", "lu", "sparse", "sparse-lu"]:
            (printed,) = self.succeed_json("solve", "A.mtx", "--method", method)
            self.assertAlmostEqual(printed["rcond"], 0.1583, 4)

    def expect_warning(self, *arguments):
        done = self.run_here("solve", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^trifactor: warning: \S+: A is singular to working precision \(condition estimate "
                                      r"\d\.\de\+\d+\): the solution may have no correct digit\n$")
        return done.stdout

    def test_hilbert_60_has_no_digits(self):
        self.write_matrix("A.mtx", [[1 / (i + j + 1) for j in range(60)] for i in range(60)])
        self.assertIn("about 0 of 16 digits can be trusted", self.expect_warning("A.mtx"))
        printed = json.loads(self.expect_warning("A.mtx", "--json", "-o", "x.mtx"))
        self.assertLess(printed["rcond"], 2.0 ** -53)
        self.assertRegex(printed["warning"], "^A is singular to working precision")
        self.assertEqual(len(parse_array(self.read("x.mtx"))), 60)

    def test_sparse_solvers_warn(self):
        self.write_matrix("A.mtx", [[1, 0, 0], [0, 1e-20, 0], [0, 0, 2]], "coordinate")
        for method in ["sparse", "sparse-lu"]:
            self.expect_warning("A.mtx", "--method", method)


class Output(SolveTest):
    def test_prints_what_it_did(self):
        self.write_matrix("A.mtx", POSITIVE, "coordinate", "real", "symmetric")
        text = self.succeed("solve", "A.mtx", "-o", "x.mtx")
        for line in [r"matrix +A.mtx: 3 x 3, coordinate real symmetric, 5 entries", r"rhs +A times ones",
                     r"method +Cholesky: A is \w+ with a positive diagonal", r"device +(host|cuda)",
                     r"read +\d+\.\d+ s", r"factor +\d+\.\d+ s", r"solve +\d+\.\d+ s", r"write +\d+\.\d+ s +x.mtx",
                     r"residual +\S+ +\|B - A X\| / \(\|A\| \|X\| eps\)", r"error +\S+"]:
            self.assertRegex(text, "(?m)^" + line)

    def test_json_has_every_key(self):
        self.write_matrix("A.mtx", POSITIVE)
        (printed,) = self.succeed_json("solve", "A.mtx")
        self.assertEqual(list(printed), [
            "matrix", "rhs", "n", "nrhs", "entries", "form", "scalar", "method", "why", "shift", "evened",
            "not_positive_definite_at", "device", "read_seconds", "factor_seconds", "solve_seconds", "write_seconds", "residual", "error",
            "rcond", "warning", "output", "commit"])
        self.assertEqual((printed["rhs"], printed["write_seconds"], printed["output"]), (None, None, None))

    def test_the_residual_is_that_of_the_solution(self):
        n = 40
        rows = [[math.sin(3 * i + 7 * j * j) + (i == j) for j in range(n)] for i in range(n)]
        X = [[math.cos(i)] for i in range(n)]
        self.write_matrix("A.mtx", rows)
        B = product(rows, X)
        self.write_matrix("b.mtx", B)
        printed, solution = self.solution("A.mtx", "--rhs", "b.mtx")
        norm = lambda M: max(sum(abs(row[j]) for row in M) for j in range(len(M[0])))
        residual = [[b[0] - r[0]] for b, r in zip(B, product(rows, solution))]
        ratio = norm(residual) / (norm(rows) * norm(solution) * 2.0 ** -53)
        self.assertLess(printed["residual"], 30)
        self.assertLess(abs(printed["residual"] - ratio), 1)

    def test_refuses_to_overwrite_its_input(self):
        text = matrix_market(POSITIVE, "array", "real", "general")
        self.write("A.mtx", text)
        self.write_matrix("b.mtx", [[1], [2], [3]])
        os.symlink("A.mtx", self.path("link.mtx"))
        os.link(self.path("b.mtx"), self.path("hard.mtx"))
        for output in ["A.mtx", "./A.mtx", "link.mtx", "b.mtx", "hard.mtx"]:
            self.fail_with(2, "would overwrite the input", "solve", "A.mtx", "--rhs", "b.mtx", "-o", output)
        self.assertEqual(self.read("A.mtx"), text)

    def test_replaces_an_older_output_only_when_all_went_well(self):
        self.write("x.mtx", "older")
        self.write_matrix("A.mtx", [[0]])
        self.fail_with(1, "singular", "solve", "A.mtx", "-o", "x.mtx")
        self.assertEqual(self.read("x.mtx"), "older")
        self.write_matrix("A.mtx", [[4]])
        self.succeed("solve", "A.mtx", "-o", "x.mtx")
        self.assertEqual(parse_array(self.read("x.mtx")), [[1.0]])
        self.assertEqual(self.files(), ["A.mtx", "x.mtx"])

    def test_an_output_behind_a_link_is_replaced_there(self):
        os.mkdir(self.path("real"))
        self.write("real/x.mtx", "older")
        os.symlink("real/x.mtx", self.path("x.mtx"))
        self.write_matrix("A.mtx", [[4]])
        self.succeed("solve", "A.mtx", "-o", "x.mtx")
        self.assertTrue(os.path.islink(self.path("x.mtx")))
        self.assertEqual(parse_array(self.read("real/x.mtx")), [[1.0]])

    def test_a_failed_write_leaves_nothing_half_written(self):
        n = 400
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n" % (n, n, n) +
                   "".join("%d %d 3\n" % (i, i) for i in range(1, n + 1)))
        self.write("b.mtx", "%%%%MatrixMarket matrix array real general\n%d 1\n" % n + "1\n" * n)
        self.write("x.mtx", "older")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        self.fail_with(3, "x.mtx: writing failed", "solve", "A.mtx", "--rhs", "b.mtx", "-o", "x.mtx", preexec_fn=limit,
                       restore_signals=False)       # Python ignores SIGXFSZ, and so does its child
        self.assertEqual(self.read("x.mtx"), "older")
        self.assertEqual(self.files(), ["A.mtx", "b.mtx", "x.mtx"])
        self.fail_with(3, "/dev/full: writing failed", "solve", "A.mtx", "-o", "/dev/full")

    def test_an_output_that_cannot_be_is_refused_before_the_work(self):
        self.write_matrix("A.mtx", [[0]])           # singular: exit 1 if it came to that
        os.mkdir(self.path("folder"))
        self.fail_with(2, "x/y.mtx: cannot be written", "solve", "A.mtx", "-o", "x/y.mtx")
        self.fail_with(2, "folder: is a directory", "solve", "A.mtx", "-o", "folder")

    def test_the_output_may_be_a_pipe(self):
        self.write_matrix("A.mtx", [[2]])
        done = self.run_here("solve", "A.mtx", "-o", "/dev/stdout")
        self.assertTrue(done.stdout.startswith("%%MatrixMarket matrix array"), done.stdout)

    def test_the_input_may_be_a_pipe(self):
        with open(self.path(self.write_matrix("A.mtx", POSITIVE))) as file:
            self.assertIn("residual", self.succeed("solve", "/dev/stdin", stdin=file))
        read, write = os.pipe()
        os.write(write, matrix_market(POSITIVE, "array", "real", "general").encode())
        os.close(write)
        with os.fdopen(read) as file:
            self.assertIn("residual", self.succeed("solve", "/dev/stdin", stdin=file))


class Resources(SolveTest):
    def test_what_cannot_be_dense_in_memory_is_refused(self):
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n% big\n9000000 9000000 1\n1 1 1\n")
        done = self.fail_with(3, "A.mtx:3: ", "solve", "A.mtx", "--method", "lu")
        self.assertRegex(done.stderr, r"9000000 x 9000000 .* takes \d+\.\d [TPE]iB of \w+ memory, but .* are "
                                      r"available; --method sparse-lu takes only what its factors hold")
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n30000 30000 1\n1 1 1\n")
        self.write("b.mtx", "%%MatrixMarket matrix coordinate real general\n30000 2000000000 1\n1 1 1\n")
        self.fail_with(3, "are available", "solve", "A.mtx", "--rhs", "b.mtx")

    def test_running_out_of_memory_is_status_3(self):
        if program.has_address_sanitizer():
            self.skipTest("the address sanitizer takes more memory than any limit")
        n = 8000
        self.write("A.mtx", "%%%%MatrixMarket matrix coordinate real general\n%d %d 1\n1 1 1\n" % (n, n))
        space = n * n * 8 * 3 // 2
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (space, space))
        if program.info()["devices"][0]["free_bytes"] < 3 * n * n * 8:
            self.skipTest("too little memory on this machine")
        done = self.fail_with(3, "memory", "solve", "A.mtx", "--device", "host", "--method", "lu", preexec_fn=limit,
                              env=dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"))
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_cuda(self):
        self.need_complex()
        self.write_matrix("A.mtx", HERMITIAN, field="complex")
        self.write_matrix("G.mtx", COMPLEX, field="complex")
        if not program.has_gpu():
            self.fail_with(3, program.why_no_gpu(), "solve", "A.mtx", "--device", "cuda")
            return
        for name, method in [("A.mtx", "cholesky"), ("G.mtx", "lu")]:
            printed, X = self.solution(name, "--device", "cuda")
            self.assertEqual((printed["device"], printed["method"]), ("cuda", method))
            self.assert_close(X, [[1], [1], [1]])


if __name__ == "__main__":
    program.main()
