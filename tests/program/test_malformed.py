"""trifactor solve: every malformed file gives exit status 2 and says file, line and rule."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

REAL = "%%MatrixMarket matrix coordinate real general\n"
SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n"
HERMITIAN = "%%MatrixMarket matrix coordinate complex hermitian\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
HUGE = "9" * 30

# text of A, the line that is wrong, a part of the rule
MALFORMED = [
    # the banner
    ("", 1, "starts with '%%MatrixMarket matrix'"),
    ("\n" + REAL + "1 1 1\n1 1 1\n", 1, "starts with '%%MatrixMarket matrix'"),
    ("%MatrixMarket matrix array real general\n1 1\n1\n", 1, "starts with '%%MatrixMarket matrix'"),
    ("1 1\n1\n", 1, "starts with '%%MatrixMarket matrix'"),
    (b"\x00\x01\xff\xfe" * 9, 1, "starts with '%%MatrixMarket matrix'"),
    ("%%MatrixMarket", 1, "the banner's object is missing"),
    ("%%MatrixMarket vector array real general\n1\n", 1, "the banner's object is 'vector'"),
    ("%%MatrixMarket matrix dense real general\n1 1\n1\n", 1, "the banner's format is 'dense'"),
    ("%%MatrixMarket matrix array quaternion general\n1 1\n1\n", 1, "the banner's field is 'quaternion'"),
    ("%%MatrixMarket matrix array real\n1 1\n1\n", 1, "the banner's symmetry is missing"),
    ("%%MatrixMarket matrix array real skew\n1 1\n1\n", 1, "the banner's symmetry is 'skew'"),
    ("%%MatrixMarket matrix array real general twice\n1 1\n1\n", 1, "'twice' is one word too many"),
    ("%%MatrixMarket matrix array pattern general\n1 1\n", 1, "an array file cannot be a pattern"),
    ("%%MatrixMarket matrix array real hermitian\n1 1\n1\n", 1, "a hermitian file is complex, not real"),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n", 1, "cannot be skew-symmetric"),
    # the sizes
    (REAL, 1, "the line with the sizes is missing"),
    (REAL + "% only\n%comments\n", 3, "the line with the sizes is missing"),
    (REAL + "\n2 2\n", 3, "the number of entries is missing"),
    (REAL + "2\n", 2, "the number of columns is missing"),
    (ARRAY + "1 1 1\n1\n", 2, "'1' is one word too many"),
    (REAL + "1 1 1 1\n1 1 1\n", 2, "'1' is one word too many"),
    (REAL + "-1 1 1\n", 2, "the number of rows -1 is negative"),
    (REAL + "1 1 -1\n", 2, "the number of entries -1 is negative"),
    (REAL + "two 2 1\n", 2, "the number of rows 'two' is not an integer"),
    (REAL + "2 2.0 1\n", 2, "the number of columns '2.0' is not an integer"),
    (REAL + HUGE + " 1 1\n", 2, "does not fit in 64 bits"),
    (REAL + "4000000000 4000000000 1\n1 1 1\n", 2, "more than can be counted in 64 bits"),
    (ARRAY + "4000000000 4000000000\n1\n", 2, "more than can be counted in 64 bits"),
    (SYMMETRIC + "2 3 1\n1 1 1\n", 2, "a symmetric matrix is square, not 2 x 3"),
    (REAL + "2 3 1\n1 1 1\n", 2, "A must be square"),
    # the number of entries
    (REAL + "2 2 3\n1 1 1\n2 2 1\n", 4, "the file ends after 2 of 3 entries"),
    (REAL + "2 2 2\n1 1 1\n\n% end\n\n", 6, "the file ends after 1 of 2 entries"),
    (ARRAY + "2 2\n1\n2\n3\n", 5, "the file ends after 3 of 4 entries"),
    (ARRAY + "3000000000 3000000000\n1\n2\n", 4, "the file ends after 2 of 9000000000000000000 entries"),
    (SYMMETRIC + "2 2 %d\n1 1 1\n" % 10**15, 3, "the file ends after 1 of 1000000000000000 entries"),
    (REAL + "2 2 1\n1 1 1\n% fine\n2 2 1\n", 5, "an entry more than the 1 that were announced"),
    (ARRAY + "1 1\n1\n2\n", 4, "an entry more than the 1 that were announced"),
    (ARRAY.replace("general", "symmetric") + "2 2\n1\n2\n3\n4\n", 6, "an entry more than the 3 that were announced"),
    (REAL + "0 0 0\n1 1 1\n", 3, "an entry more than the 0 that were announced"),
    # the entries
    (REAL + "2 2 2\n1 1 1\n3 1 1\n", 4, "the row 3 is not in 1..2"),
    (REAL + "2 2 2\n0 1 1\n2 1 1\n", 3, "the row 0 is not in 1..2"),
    (REAL + "2 2 2\n1 1 1\n2 -7 1\n", 4, "the column -7 is not in 1..2"),
    (REAL + "2 2 1\n1 " + HUGE + " 1\n", 3, "does not fit in 64 bits"),
    (REAL + "2 2 1\n1.0 1 1\n", 3, "the row '1.0' is not an integer"),
    (REAL + "2 2 1\n1 1\n", 3, "the value is missing"),
    (REAL + "2 2 1\n1 1 % 5\n", 3, "the value is missing"),
    (REAL + "2 2 1\n1 1 1 0\n", 3, "'0' is one word too many"),
    (REAL + "2 2 1\n1 1 one\n", 3, "the value 'one' is not a number"),
    (REAL + "2 2 1\n1 1 1,5\n", 3, "the value '1,5' is not a number"),
    (REAL + "2 2 1\n1 1 1.5.2\n", 3, "the value '1.5.2' is not a number"),
    (REAL + "2 2 1\n1 1 0x10\n", 3, "the value '0x10' is not a number"),
    (REAL + "2 2 1\n1 1 +-1\n", 3, "the value '+-1' is not a number"),
    (REAL + "2 2 1\n1 1 1e\n", 3, "the value '1e' is not a number"),
    (REAL + "2 2 1\n1 1 1e999\n", 3, "the value '1e999' is beyond the range of double"),
    (REAL + "2 2 1\n1 1 -1D+999\n", 3, "the value '-1D+999' is beyond the range of double"),
    (REAL + "2 2 1\n1 1 \x01" + "x" * 90 + "\n", 3, "the value '?" + "x" * 39 + "...' is not a number"),
    (ARRAY + "2 2\n1\n2\n3 4\n", 5, "'4' is one word too many"),
    (ARRAY + "2 2\r\n1\r\n2\r\nx\r\n4\r\n", 5, "the value 'x' is not a number"),
    (REAL.replace("real", "integer") + "1 1 1\n1 1 1.5\n", 3, "the value '1.5' is not an integer"),
    (REAL.replace("real", "integer") + "1 1 1\n1 1 -\n", 3, "the value '-' is not an integer"),
    (REAL.replace("real", "complex") + "1 1 1\n1 1 1.5\n", 3, "the imaginary part is missing"),
    (REAL.replace("real", "complex") + "1 1 1\n1 1 1 i\n", 3, "the imaginary part 'i' is not a number"),
    (REAL.replace("real", "pattern") + "1 1 1\n1 1 1\n", 3, "'1' is one word too many"),
    # the symmetries
    (SYMMETRIC + "2 2 2\n1 1 1\n1 2 1\n", 4, "entry (1, 2) lies above the diagonal"),
    (HERMITIAN + "2 2 2\n1 1 1 0\n2 2 1 0.5\n", 4, "diagonal entry 2 of a hermitian"),
    (HERMITIAN.replace("coordinate", "array") + "2 2\n1 0\n1 1\n1 1e-9\n", 5, "diagonal entry 2 of a hermitian"),
    (HERMITIAN + "2 2 2\n1 1 1 0\n1 2 1 0.5\n", 4, "entry (1, 2) lies above the diagonal, but a hermitian"),
    ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n", 4, "diagonal entry 2 of a skew-"),
]


class Malformed(ProgramTest):
    def setUp(self):
        super().setUp()
        if not program.has_scalar("c64"):           # entries are read when it is known which scalar solves them
            self.skipTest("this build leaves c64 out")

    def test_the_matrix(self):
        for text, line, rule in MALFORMED:
            with self.subTest(text=text):
                self.write("A.mtx", text)
                done = self.fail_with(2, rule, "solve", "A.mtx", "-o", "x.mtx")
                self.assertTrue(done.stderr.startswith("trifactor: A.mtx:%d: " % line), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertEqual(self.files(), ["A.mtx"])

    def test_the_right_hand_side(self):
        self.write("A.mtx", REAL + "2 2 2\n1 1 1\n2 2 1\n")
        for text, line, rule in [
            (ARRAY + "% wrong\n3 1\n1\n2\n3\n", 3, "the right-hand side has 3 rows, but A has 2"),
            (REAL + "2 3000000000 0\n", 2, "3000000000 right-hand sides are more than"),
            (ARRAY + "2 1\n1\nx\n", 4, "the value 'x' is not a number"),
            (ARRAY + "2 1\n1\n", 3, "the file ends after 1 of 2 entries"),
        ]:
            with self.subTest(text=text):
                self.write("b.mtx", text)
                done = self.fail_with(2, rule, "solve", "A.mtx", "--rhs", "b.mtx")
                self.assertTrue(done.stderr.startswith("trifactor: b.mtx:%d: " % line), done.stderr)

    def test_files_that_are_not_there(self):
        os.mkdir(self.path("folder"))
        self.fail_with(2, "nothing.mtx: No such file or directory", "solve", "nothing.mtx")
        self.fail_with(2, "folder: Is a directory", "solve", "folder")
        self.write("A.mtx", REAL + "1 1 1\n1 1 1\n")
        self.fail_with(2, "b.mtx: No such file or directory", "solve", "A.mtx", "--rhs", "b.mtx")


if __name__ == "__main__":
    program.main()
