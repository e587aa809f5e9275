"""What is refused, and in which words."""
import pickle

import numpy as np
import pytest
import trifactor


def test_errors_are_known_kinds():
    assert issubclass(trifactor.NotPositiveDefinite, np.linalg.LinAlgError)
    assert issubclass(trifactor.Singular, np.linalg.LinAlgError)
    assert issubclass(trifactor.OutOfMemory, MemoryError)
    assert issubclass(trifactor.DeviceFault, RuntimeError)


@pytest.mark.parametrize("n", [1, 4, 30])
def test_the_failing_column_is_named(n):
    for column in range(n):
        A = np.eye(n)
        A[column, column] = -1
        with pytest.raises(trifactor.NotPositiveDefinite, match=f"column {column} ") as e:
            trifactor.cholesky(A)
        assert (e.value.column, e.value.order, e.value.item) == (column, column + 1, None)
        with pytest.raises(trifactor.NotPositiveDefinite, match=f"column {column} "):
            trifactor.solve(A, np.ones(n), assume_a="pos")
        A[column, column] = 0
        with pytest.raises(trifactor.Singular, match=f"column {column} "):
            trifactor.solve(A, np.ones(n))
        with pytest.raises(trifactor.Singular, match=f"column {column} "):
            trifactor.inv(A)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_not_positive(bad):
    A = np.eye(3)
    A[1, 1] = bad
    with pytest.raises(trifactor.NotPositiveDefinite, match="column 1 "):
        trifactor.cholesky(A)


def test_the_failing_item_is_named():
    A = np.tile(np.eye(3), (2, 4, 1, 1))
    A[1, 2, 2, 2] = -1
    with pytest.raises(trifactor.NotPositiveDefinite, match=r"column 2 .* item \(1, 2\)") as e:
        trifactor.cholesky(A)
    assert e.value.item == (1, 2) and e.value.column == 2
    with pytest.raises(trifactor.NotPositiveDefinite, match="item 1$"):
        trifactor.cholesky([np.eye(2), -np.eye(3)])
    again = pickle.loads(pickle.dumps(e.value))
    assert str(again) == str(e.value) and again.item == (1, 2)


@pytest.mark.parametrize("call, error, words", [
    (lambda: trifactor.cholesky(np.ones((3, 4))), ValueError, r"\(3, 4\) .*\(..., n, n\)"),
    (lambda: trifactor.cholesky(np.ones(3)), ValueError, r"\(3,\)"),
    (lambda: trifactor.cholesky([np.eye(2), np.ones((2, 3))]), ValueError, r"\(2, 3\)"),
    (lambda: trifactor.cholesky([np.eye(2), np.ones(2)]), ValueError, r"A\[1\].*\(2,\)"),
    (lambda: trifactor.cholesky([np.eye(2), np.eye(3, dtype="f4")]), TypeError, r"A\[1\].*float32.*float64"),
    (lambda: trifactor.cholesky(np.eye(2, dtype="f2")), TypeError, "float16.*float32, float64"),
    (lambda: trifactor.cholesky(np.eye(2, dtype=object)), TypeError, "object"),
    (lambda: trifactor.cholesky(np.eye(2, dtype=np.longdouble)), TypeError, "float128|longdouble"),
    (lambda: trifactor.cholesky(np.zeros((2, 2), "M8[s]")), TypeError, "datetime64"),
    (lambda: trifactor.cholesky("text"), TypeError, "dtype"),
    (lambda: trifactor.cholesky(np.eye(2), shift_tries=-1), ValueError, "-1"),
    (lambda: trifactor.solve(np.eye(2), np.ones(3)), ValueError, r"\(3,\).*\(2,\)"),
    (lambda: trifactor.solve(np.eye(2), np.ones(())), ValueError, r"\(\)"),
    (lambda: trifactor.solve(np.eye(2), np.ones((3, 2))), ValueError, r"\(3, 2\)"),
    (lambda: trifactor.solve(np.zeros((2, 3, 3)), np.ones((4, 3, 1))), ValueError, r"\(2,\).*\(4,\)"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), assume_a="sym"), ValueError, "'sym'.*'pos', 'gen'"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=np.ones(3)), ValueError, r"\(3,\).*\(2,\)"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=np.ones(2, "f4")), ValueError, "float32.*float64"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=np.ones(2, "i8")), ValueError, "dtype int64 but .*float64"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=np.ones(2).astype(np.dtype("f8").newbyteorder())), ValueError,
     "f8 and is in the other byte order but"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=np.zeros(17, "u1")[1:].view("f8")), ValueError,
     "float64 and is not aligned but"),
    (lambda: trifactor.solve(np.eye(2), np.ones(2), out=[0.0, 0.0]), TypeError, "out is a list but must be an array"),
    (lambda: trifactor.inv(np.eye(2), out=[[0.0, 0.0], [0.0, 0.0]]), TypeError, "out is a list but must be an array"),
    (lambda: trifactor.lu([np.eye(2), np.zeros((2**31, 0))]), ValueError, r"\(2147483648, 0\) .* at most 2147483647 rows"),
    (lambda: trifactor.solve([np.eye(2)], np.ones(2)), ValueError, "list of 1"),
    (lambda: trifactor.solve([np.eye(2), np.eye(3)], [np.ones(2)]), ValueError, "list of 2"),
    (lambda: trifactor.solve([np.eye(2)], [np.ones(2)], out=np.ones(2)), ValueError, "out must be None for a list"),
    (lambda: trifactor.lu([np.eye(2)]).inverse(out=np.eye(2)), ValueError, "out must be None for a list"),
    (lambda: trifactor.lu(np.ones((2, 3))).solve(np.ones(2)), ValueError, r"\(2, 3\)"),
    (lambda: trifactor.lu(np.eye(2)).solve(np.ones(2), trans=3), ValueError, "trans = 3 must"),
    (lambda: trifactor.lu(np.eye(2)).solve(np.ones(2), trans=2**70), ValueError, "trans = 1180591620717411303424 must"),
    (lambda: trifactor.lu(np.eye(2)).solve(np.ones(2), trans=1.0), ValueError, "trans = 1.0 must"),
    (lambda: trifactor.lu(np.eye(2)).solve(np.ones(2), trans="X"), ValueError, "trans = 'X' must"),
    (lambda: trifactor.cholesky(np.eye(2, dtype="f4")).solve(np.ones(2)), TypeError, "float64.*float32"),
    (lambda: trifactor.cholesky(np.eye(2)).solve(np.ones(2, "c16")), TypeError, "complex128.*float64"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_read_only_arrays_are_not_overwritten():
    A = np.eye(3) * 4
    A.setflags(write=False)
    assert trifactor.cholesky(A, overwrite_a=True).L[0, 0] == 2 and A[0, 0] == 4
    out = np.zeros(3)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        trifactor.solve(A, np.ones(3), out=out)


def test_a_missing_device_is_named():
    class Elsewhere:
        shape = (2, 2)
        __module__ = "some.library"

        def __dlpack__(self, **_):
            raise AssertionError

    with pytest.raises(TypeError, match="some.library"):
        trifactor.cholesky(Elsewhere())
