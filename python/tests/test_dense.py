"""NumPy's arrays on the host."""
import threading

import numpy as np
import pytest
import trifactor
from matrices import DTYPES, adjoint, factor_ratio, in_threads, positive, random, solve_ratio

SHAPES = [(1, 1), (2, 2), (5, 5), (50, 50), (3, 4, 4), (2, 3, 6, 6), (0, 0), (0, 3, 3), (2, 0, 0), (1, 4, 4)]
dtypes = pytest.mark.parametrize("dtype", DTYPES)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
orders = pytest.mark.parametrize("order", ["C", "F"])


def rhs_shapes(shape):
    return [(shape[-1],), shape[:-1], (*shape[:-1], 3), (*shape[:-1], 1), (shape[-1], 2), (*shape[:-1], 0)]


@dtypes
@shapes
@orders
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("overwrite", [False, True])
def test_cholesky(rng, dtype, shape, order, lower, overwrite):
    A = np.array(positive(rng, shape, dtype), order=order)
    given = A.copy(order="K")
    other = np.ones(shape[-2:], bool)
    given[..., np.triu(other, 1) if lower else np.tril(other, -1)] = np.nan   # the other triangle is not read
    before = given.copy()
    F = trifactor.cholesky(given, lower, overwrite_a=overwrite)
    for b_shape in rhs_shapes(shape):
        b = random(rng, b_shape, dtype)
        x = F.solve(b)
        assert x.dtype == A.dtype and solve_ratio(A, x, b) < 30
    L, U = F.L, F.U
    assert (L == np.tril(L)).all() and (U == np.triu(U)).all() and (U == adjoint(L)).all()
    assert factor_ratio(A, L @ adjoint(L)) < 30
    assert solve_ratio(A, F.inverse(), np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)) < 30
    assert np.allclose(F.log_det(), np.linalg.slogdet(A)[1], atol=1e-4 if dtype in ("float32", "complex64") else 1e-11)
    assert F.shape == shape and F.dtype == dtype and F.lower == lower and not np.any(F.info)
    if not overwrite:
        assert np.array_equal(given, before, equal_nan=True)
    elif A.size > 1 and (order == "C" or A.ndim == 2):
        assert np.shares_memory(L if lower else U, given)   # row-major or column-major, no copy


@dtypes
@shapes
@orders
@pytest.mark.parametrize("assume_a", ["pos", "gen", None])
@pytest.mark.parametrize("overwrite", [False, True])
def test_solve(rng, dtype, shape, order, assume_a, overwrite):
    A = np.array(positive(rng, shape, dtype), order=order)
    if assume_a == "gen":
        A = np.array(random(rng, shape, dtype), order=order)
    for b_shape in rhs_shapes(shape):
        given, b = A.copy(order="K"), random(rng, b_shape, dtype)
        x = trifactor.solve(given, b.copy(), assume_a=assume_a, overwrite_a=overwrite, overwrite_b=overwrite)
        assert solve_ratio(A, x, b) < 30
        assert overwrite or (given == A).all()


@dtypes
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 3, 5), (2, 4, 4), (0, 2), (2, 0)], ids=str)
@orders
def test_lu(rng, dtype, shape, order):
    A = np.array(random(rng, shape, dtype), order=order)
    before = A.copy()
    F = trifactor.lu(A)
    PA = np.take_along_axis(A, F.p[..., None].astype(int), -2)
    assert factor_ratio(PA, F.L @ F.U) < 30
    assert (A == before).all()
    F = trifactor.lu(A, overwrite_a=True)
    PA = np.take_along_axis(before, F.p[..., None].astype(int), -2)
    assert factor_ratio(PA, F.L @ F.U) < 30


@dtypes
@shapes
def test_lu_solve_inverse_determinant(rng, dtype, shape):
    A = random(rng, shape, dtype)
    F = trifactor.lu(A)
    for b_shape in rhs_shapes(shape):
        b = random(rng, b_shape, dtype)
        assert solve_ratio(A, F.solve(b), b) < 30
        assert solve_ratio(np.swapaxes(A, -1, -2), F.solve(b, 1), b) < 30
        assert solve_ratio(adjoint(A), F.solve(b, trans="H"), b) < 30
        assert np.array_equal(F.solve(b, trans=np.int64(1)), F.solve(b, trans="T"))
    eye = np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
    for X in (F.inverse(), trifactor.inv(A), trifactor.inv(A.copy(), overwrite_a=True)):
        assert solve_ratio(A, X, eye) < 100
    expected = np.linalg.slogdet(A)
    for result in (F.slogdet(), trifactor.slogdet(A), trifactor.slogdet(A.copy(), overwrite_a=True)):
        assert np.allclose(result.sign, expected.sign, atol=1e-4)
        single = dtype in ("float32", "complex64")
        assert np.allclose(result.logabsdet, expected.logabsdet, atol=1e-3 if single else 1e-10)
    assert np.allclose(F.log_det(), expected.logabsdet, atol=1e-3)


@dtypes
def test_positive_inverse_and_determinant(rng, dtype):
    A = positive(rng, (3, 4, 4), dtype)
    assert solve_ratio(A, trifactor.inv(A, assume_a="pos"), np.broadcast_to(np.eye(4, dtype=dtype), A.shape)) < 30
    sign, logabsdet = trifactor.slogdet(A, assume_a="pos", lower=False)
    assert (sign == 1).all() and np.allclose(logabsdet, np.linalg.slogdet(A)[1], rtol=1e-4)


@dtypes
@orders
def test_ragged(rng, dtype, order):
    orders_of = [3, 0, 1, 7, 4]
    A = [np.array(positive(rng, (n, n), dtype), order=order) for n in orders_of]
    b = [random(rng, (n,) if n % 2 else (n, 2), dtype) for n in orders_of]
    for overwrite in (False, True):
        for assume_a in ("pos", "gen", None):
            given = [a.copy(order="K") for a in A]
            xs = trifactor.solve(given, b, assume_a=assume_a, overwrite_a=overwrite)
            for a, x, c in zip(A, xs, b):
                assert x.shape == c.shape and solve_ratio(a, x, c) < 30
        F = trifactor.cholesky([a.copy(order="K") for a in A], overwrite_a=overwrite)
        for a, x, c, L, X in zip(A, F.solve(b), b, F.L, F.inverse()):
            assert solve_ratio(a, x, c) < 30 and factor_ratio(a, L @ adjoint(L)) < 30
            assert solve_ratio(a, X, np.eye(len(a), dtype=dtype)) < 30
    assert np.allclose(F.log_det(), [np.linalg.slogdet(a)[1] for a in A], rtol=1e-4)
    assert F.shape == [a.shape for a in A]
    G = trifactor.lu(A)
    for a, L, U, p, x, c in zip(A, G.L, G.U, G.p, G.solve(b, "T"), b):
        assert factor_ratio(a[p], L @ U) < 30 and solve_ratio(a.T, x, c) < 30
    assert np.allclose(G.slogdet().logabsdet, [np.linalg.slogdet(a)[1] for a in A], rtol=1e-4)


def test_ragged_rectangles(rng):
    A = [random(rng, shape, "float64") for shape in [(3, 5), (5, 3), (4, 4), (1, 2)]]
    F = trifactor.lu(A)
    for a, L, U, p in zip(A, F.L, F.U, F.p):
        assert factor_ratio(a[p], L @ U) < 30


def test_ragged_of_mixed_orders(rng):
    A = [np.array(positive(rng, (n, n), "complex128"), order=o) for n, o in [(3, "C"), (4, "F"), (2, "C")]]
    b = [random(rng, (len(a),), "complex128") for a in A]
    for overwrite in (False, True):
        xs = trifactor.solve([a.copy(order="K") for a in A], b, assume_a="pos", overwrite_a=overwrite)
        assert all(solve_ratio(a, x, c) < 30 for a, x, c in zip(A, xs, b))


@pytest.mark.parametrize("view", [lambda A: A[::2, ::2], lambda A: A[::-1, ::-1], lambda A: A[1:7, 1:7],
                                  lambda A: np.asfortranarray(A)[1:7, 1:7]])
def test_any_strides(rng, view):
    whole = positive(rng, (10, 10), "float64")
    A, b = view(whole), random(rng, (view(whole).shape[0], 4), "float64")[:, ::2]
    before = whole.copy()
    for assume_a in ("pos", "gen", None):
        assert solve_ratio(A, trifactor.solve(A, b, assume_a=assume_a), b) < 30
    assert (whole == before).all()
    expected = A.copy()
    L = trifactor.cholesky(A, overwrite_a=True).L
    assert factor_ratio(expected, L @ L.T) < 30


def test_fields_of_records(rng):
    """Strides that are no multiples of an entry, and addresses that are not aligned."""
    A, b = positive(rng, (5, 5), "complex128"), random(rng, (5,), "complex128")
    for before in ("i1", "f8"):
        records = np.zeros((5, 5), dtype=[("before", before), ("A", "c16")])
        records["A"] = A
        for overwrite in (False, True):
            x = trifactor.solve(records["A"], b, assume_a="pos", overwrite_a=overwrite)
            assert solve_ratio(A, x, b) < 30 and (records["A"] == A).all()


def test_overwriting_leaves_the_rest_alone(rng):
    whole = random(rng, (10, 10), "float64")
    whole[2:6, 2:6] = positive(rng, (4, 4), "float64")
    before, block = whole.copy(), whole[2:6, 2:6]
    F = trifactor.cholesky(block, overwrite_a=True)
    assert np.shares_memory(F.L, whole)
    before[2:6, 2:6] = whole[2:6, 2:6]
    assert (whole == before).all()


def test_broadcasting(rng):
    A, b = positive(rng, (2, 1, 4, 4), "float64"), random(rng, (1, 3, 4, 2), "float64")
    for assume_a in ("pos", "gen"):
        x = trifactor.solve(A, b, assume_a=assume_a)
        assert x.shape == (2, 3, 4, 2) and np.allclose(A @ x, b)
    one = trifactor.cholesky(A[0, 0])
    assert np.allclose(A[0, 0] @ one.solve(b), b)
    with pytest.raises(ValueError, match="batch"):
        trifactor.cholesky(A).solve(b)


def test_out_and_overwrite_b(rng):
    A = positive(rng, (5, 5), "float64")
    F, G = trifactor.cholesky(A), trifactor.lu(A)
    for order in "CF":
        b = np.array(random(rng, (5, 3), "float64"), order=order)
        for call in (F.solve, G.solve, lambda b, **more: trifactor.solve(A, b, **more),
                     lambda b, **more: trifactor.solve(A, b, assume_a="pos", **more)):
            out = np.zeros_like(b)
            assert call(b, out=out) is out and np.allclose(A @ out, b)
    for call in (F.solve, lambda b, **more: trifactor.solve(A, b, assume_a="gen", **more)):
        b = np.asfortranarray(random(rng, (5, 3), "float64"))
        expected = np.linalg.solve(A, b)
        x = call(b, overwrite_b=True)
        assert np.shares_memory(x, b) and np.allclose(x, expected)
    out, b = np.zeros(5), np.ones(5, "f4")
    assert trifactor.solve(A, b, out=out, assume_a="gen") is out and np.allclose(A @ out, 1)   # b of another dtype
    assert F.solve(b, out=out) is out and np.allclose(A @ out, 1)
    out = np.zeros((5, 5))
    assert trifactor.inv(A, out=out) is out and np.allclose(out @ A, np.eye(5))
    out = np.zeros((5, 5), order="F")
    assert trifactor.inv(A, out=out) is out and np.allclose(out @ A, np.eye(5))


@dtypes
@pytest.mark.parametrize("call", [lambda A, b, out: trifactor.cholesky(A).solve(b, out=out),
                                  lambda A, b, out: trifactor.lu(A).solve(b, out=out),
                                  *(lambda A, b, out, a=a: trifactor.solve(A, b, out=out, assume_a=a)
                                    for a in ("pos", "gen", None))])
def test_out_may_share_memory_with_b(rng, dtype, call):
    A = positive(rng, (4, 4), dtype)
    line, square = np.zeros(9, dtype), np.zeros((4, 4), dtype)
    for b, out in [(line[:4], line[1:5]), (line[1:5], line[:4]), (line[:4], line[:4]), (line[3::-1], line[:4]),
                   (line[:8:2], line[:4]), (square, square.T), (square.T, square), (square, square),
                   (square[::-1], square), (square[:, :2], square.T[:, :2])]:
        b[...] = random(rng, b.shape, dtype)
        before = b.copy()
        assert call(A, b, out) is out and solve_ratio(A, out, before) < 30
    many = np.array([A, 2 * A, 4 * A])
    X = np.zeros((3, 4), dtype)
    X[1] = before = random(rng, (4,), dtype)   # one right-hand side within the solutions
    call(many, X[1], X)
    assert solve_ratio(many, X, np.tile(before, (3, 1))) < 30


@dtypes
@orders
def test_overwritten_arrays_may_share_memory(rng, dtype, order):
    given = np.array(positive(rng, (5, 5), dtype), order=order)
    for assume_a in ("pos", "gen"):
        for b in (lambda A: A[:, 0], lambda A: A, lambda A: A[:, 1:3], lambda A: A.T):
            for out in (None, b):
                A = given.copy(order="K")
                x = trifactor.solve(A, b(A), assume_a=assume_a, overwrite_a=True, overwrite_b=True, out=out and out(A))
                assert solve_ratio(given, x, b(given)) < 30
    for out_order in (lambda A: A, lambda A: A.T):
        A = given.copy(order="K")
        X = trifactor.inv(A, overwrite_a=True, out=out_order(A))
        assert np.shares_memory(X, A) and solve_ratio(given, X, np.eye(5, dtype=dtype)) < 30
    A = given.copy(order="K")
    F = trifactor.cholesky(A, overwrite_a=True)
    b = A[:, -1].copy()   # a column of the factor's memory
    assert solve_ratio(given, F.solve(A[:, -1], overwrite_b=True), b) < 30


@dtypes
@orders
@pytest.mark.parametrize("n", [5, 100])
def test_items_of_lists_may_share_memory(rng, dtype, order, n):
    given = np.array(positive(rng, (n, n), dtype), order=order)
    A = given.copy(order="K")
    lists = [A, A, A[:3, :3], A[1:, 1:]]
    expected = [a.copy() for a in lists]
    for a, L in zip(expected, trifactor.cholesky(lists, overwrite_a=True).L):
        assert factor_ratio(a, L @ adjoint(L)) < 30
    apart = [given.copy(order="K") for _ in range(3)]
    for L, a in zip(trifactor.cholesky(apart, overwrite_a=True).L, apart):
        assert np.shares_memory(L, a)
    lists = [given.copy(order="K") for _ in range(3)]
    lists[1].setflags(write=False)   # a copy beside two that are overwritten
    for L in trifactor.cholesky(lists, overwrite_a=True).L:
        assert factor_ratio(given, L @ adjoint(L)) < 30
    one = random(rng, (n,), dtype)
    b = [one, one[:3], one[1:]]
    A = [given, given[:3, :3], given[1:, 1:]]
    before = [c.copy() for c in b]
    for a, x, c in zip(A, trifactor.solve(A, b, assume_a="pos", overwrite_b=True), before):
        assert solve_ratio(a, x, c) < 30


def test_long_strides(rng):
    """A leading dimension that no int holds."""
    import mmap
    n = 2**32 + 2
    try:   # addresses, of which only two pages are ever memory
        whole = np.frombuffer(mmap.mmap(-1, 4 * (n + 8), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000), "f4")
    except (OSError, AttributeError, OverflowError):
        pytest.skip("no such address space")
    A = np.lib.stride_tricks.as_strided(whole, (2, 2), (4 * n, 4))
    for view in (A, A.T):
        view[...] = given = positive(rng, (2, 2), "float32")
        for L in (trifactor.cholesky(view, overwrite_a=True).L, trifactor.cholesky([view], overwrite_a=True).L[0]):
            assert factor_ratio(given, L @ L.T) < 30
        A[...] = given
        b = given @ np.ones((2, 2), "f4")
        for call in (trifactor.cholesky(given).solve, lambda b, **more: trifactor.solve(given, b, **more)):
            assert call(b, out=view) is view and np.allclose(view, 1, atol=1e-5)


def test_dtypes_are_promoted(rng):
    A = positive(rng, (3, 3), "float64")
    assert trifactor.solve(A.astype("f4"), np.ones(3)).dtype == "f8"
    assert trifactor.solve(A.astype("f4"), np.ones(3, "f4")).dtype == "f4"
    assert trifactor.solve(A, np.ones(3, "c8")).dtype == "c16"
    assert np.allclose(trifactor.solve([[2, 0], [0, 4]], [2, 4]), 1)
    for dtype in (">f8", ">i2", ">i4", ">i8", "<i4", "?"):
        assert trifactor.cholesky(np.eye(3).astype(dtype)).dtype == "float64"
    assert trifactor.cholesky(A.astype("f4")).solve([1, 2, 3]).dtype == "f4"
    assert np.allclose(A @ trifactor.cholesky(A).solve(np.ones(3, "f4")), 1)


def test_assume_none_takes_lu_where_cholesky_fails(rng):
    A = random(rng, (6, 6), "float64")
    A = A + A.T
    np.fill_diagonal(A, 1)   # symmetric, a positive diagonal, and indefinite
    b = random(rng, (6,), "float64")
    for out in (None, np.zeros(6)):
        given, rhs = A.copy(), b.copy()
        x = trifactor.solve(given, rhs, overwrite_a=True, overwrite_b=True, out=out)
        assert solve_ratio(A, x, b) < 100
    batch = np.array([np.eye(6), A])
    assert solve_ratio(batch, trifactor.solve(batch, b), b) < 100


def test_singular_matrices_have_determinant_zero():
    for A in (np.zeros((3, 3)), np.ones((2, 3, 3), "complex64")):
        sign, logabsdet = trifactor.slogdet(A)
        assert np.all(sign == 0) and np.all(np.isneginf(logabsdet))


def test_memory_is_given_back():
    import resource
    A, b = np.eye(60), np.ones(60)
    F = trifactor.cholesky(A)

    def work():
        trifactor.cholesky(A), trifactor.solve(A, b), trifactor.lu(A).solve(b), F.solve(b)
        try:
            trifactor.cholesky(-A)
        except trifactor.NotPositiveDefinite:
            pass

    for _ in range(200):
        work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2000):
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000   # KB; each round takes some 100


def test_shift():
    A = np.array([np.eye(2), np.ones((2, 2)) - np.eye(2)])
    F = trifactor.cholesky(A, shift_tries=3, shift_first=0.5, shift_growth=4)
    assert F.shift[0] == 0 and F.shift[1] > 1
    assert np.allclose(F.L[1] @ F.L[1].T, A[1] + F.shift[1] * np.eye(2))
    assert trifactor.cholesky(np.eye(2)).shift == 0


def test_failed_items_are_left_out_without_check():
    A = np.array([4 * np.eye(2), -np.eye(2), np.eye(2)])
    F = trifactor.cholesky(A, check=False)
    assert F.info.tolist() == [0, 1, 0]
    assert F.solve(np.full((3, 2), 4.0)).tolist() == [[1, 1], [4, 4], [4, 4]]
    assert np.isnan(F.log_det()[1])
    G = trifactor.lu(np.array([np.eye(2), np.zeros((2, 2))]), check=False)
    assert G.info.tolist() == [0, 1] and G.solve(np.ones((2, 2)))[1].tolist() == [1, 1]


@dtypes
@orders
@pytest.mark.parametrize("factor", [trifactor.cholesky, trifactor.lu])
def test_failed_items_have_no_inverse(dtype, order, factor):
    A = np.zeros((3, 40, 40), dtype, order)
    A[0] = A[2] = 4 * np.eye(40)
    F, G = factor(A, check=False), factor(list(A), check=False)
    outs = [] if factor is trifactor.cholesky else [F.inverse(out=np.zeros(A.shape, dtype, order))]
    for X in (F.inverse(), G.inverse(), *outs):
        assert np.isnan(X[1]).all() and (X[0] == np.eye(40) / 4).all() and (X[2] == X[0]).all()


def test_threads_share_a_factor(rng):
    A = positive(rng, (60, 60), "float64")
    F = trifactor.cholesky(A)
    wrong = []

    def work(seed):
        mine = np.random.default_rng(seed)
        for _ in range(50):
            b = mine.standard_normal((60, 3))
            if solve_ratio(A, F.solve(b), b) > 30 or not np.array_equal(trifactor.cholesky(A).L, F.L):
                wrong.append(seed)

    in_threads(work)
    assert not wrong


def test_the_interpreter_runs_during_work(rng):
    """Another thread counts while a large matrix is factored: it could not if the interpreter's lock were held."""
    A = positive(rng, (1500, 1500), "float64")
    counted, done = [], threading.Event()

    def count():
        while not done.is_set():
            counted.append(1)
            done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(counted)
    trifactor.cholesky(A, overwrite_a=True)
    during = len(counted) - before
    done.set()
    thread.join()
    assert during >= 3
