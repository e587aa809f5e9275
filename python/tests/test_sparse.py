"""Sparse Cholesky and LU of SciPy's matrices, on the host but where a test is marked cuda."""

import re

import numpy as np
import pytest
import trifactor
from matrices import DTYPES, in_threads

sp = pytest.importorskip("scipy.sparse")
dtypes = pytest.mark.parametrize("dtype", DTYPES)
formats = pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix", "coo_matrix", "csc_array", "csr_array",
                                           "coo_array"])


def grid(k, dtype="float64", shift=0.5):
    """The five-point Laplacian of a k x k grid plus a shift; hermitian with imaginary entries where complex."""
    off = -1j if "complex" in dtype else -1
    line = sp.diags([np.conj(off), 2, off], [-1, 0, 1], shape=(k, k))
    eye = sp.identity(k)
    return sp.csc_matrix(sp.kron(line, eye) + sp.kron(eye, line) + shift * sp.identity(k * k)).astype(dtype)


def general(rng, n, dtype="float64"):
    A = sp.random(n, n, 0.1, random_state=3, format="csc") + sp.identity(n)
    if "complex" in dtype:
        A = A + 1j * sp.random(n, n, 0.1, random_state=4, format="csc")
    return sp.csc_matrix(A).astype(dtype)


def close(a, b, dtype):
    scale = np.abs(b).max(initial=1)
    return np.abs(a - b).max(initial=0) < (1e-3 if dtype in ("float32", "complex64") else 1e-10) * scale


@dtypes
@formats
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(rng, dtype, kind, lower):
    full = grid(7, dtype)
    A = getattr(sp, kind)(full)
    F = trifactor.sparse.cholesky(A, lower=lower)
    n = A.shape[0]
    for shape in [(n,), (n, 1), (n, 3), (n, 0)]:
        b = rng.standard_normal(shape).astype(dtype)
        for x in (F(b), F.solve_A(b), F.solve(b), F.solve_refined(A, b).x):
            assert x.dtype == dtype and x.shape == shape and close(full @ x, b, dtype)
    p, L = F.P(), F.L()
    expected = full.toarray()[p][:, p]
    assert close((L @ L.conj().T).toarray(), expected, dtype)
    assert sp.issparse(L) and L.format == "csc" and ("array" in type(L).__name__) == ("array" in kind)
    U, D = F.L_D()
    assert close((U @ D @ U.conj().T).toarray(), expected, dtype) and np.allclose(U.diagonal(), 1)
    packed = F.LD()
    assert np.allclose(packed.diagonal(), F.D())
    assert close(sp.tril(packed, -1).toarray(), sp.tril(U, -1).toarray(), dtype)
    assert np.isclose(F.logdet(), np.linalg.slogdet(full.toarray())[1], rtol=1e-4)
    assert F.slogdet() == (1.0, F.logdet()) and np.isclose(np.log(F.det()), F.logdet(), rtol=1e-4)
    assert close((F.inv() @ full).toarray(), np.eye(n), dtype)
    assert 0 < F.rcond() <= 1


@dtypes
def test_parts_of_a_solve(rng, dtype):
    A = grid(6, dtype)
    F = trifactor.sparse.cholesky(A)
    n, p = A.shape[0], F.P()
    L, (U, D) = F.L().toarray(), [M.toarray() for M in F.L_D()]
    for shape in [(n,), (n, 2)]:
        b = rng.standard_normal(shape).astype(dtype)
        assert np.array_equal(F.apply_P(b), b[p]) and np.array_equal(F.apply_Pt(b[p]), b)
        assert close(L @ F.solve_L(b, False), b, dtype) and close(U @ F.solve_L(b), b, dtype)
        assert close(L.conj().T @ F.solve_Lt(b, False), b, dtype) and close(U.conj().T @ F.solve_Lt(b), b, dtype)
        assert close(D @ F.solve_D(b), b, dtype) and close(U @ D @ F.solve_LD(b), b, dtype)
        assert close(D @ U.conj().T @ F.solve_DLt(b), b, dtype)
        assert close(L @ L.conj().T @ F.solve_LDLt(b), b, dtype)


def test_one_triangle_is_enough(rng):
    A, b = grid(6), rng.standard_normal(36)
    x = trifactor.sparse.cholesky(A)(b)
    for M, lower in [(sp.tril(A), True), (sp.triu(A), False), (sp.tril(A).tocsr(), True), (sp.triu(A).tocsr(), False)]:
        assert np.allclose(trifactor.sparse.cholesky(M, lower=lower)(b), x)


@pytest.mark.parametrize("lower", [True, False])
def test_new_values_and_shift(rng, lower):
    A, b = grid(8), rng.standard_normal(64)
    F = trifactor.sparse.analyze(A, lower=lower, expected_factorizations=10)
    assert F.plan.n == 64 and F.plan.entries <= A.nnz and F.plan.flops > 0 and "64" in str(F.plan)
    with pytest.raises(ValueError, match="cholesky_inplace"):
        F(b)
    for scale in (1, 2, 3):
        F.cholesky_inplace(scale * A)
        assert np.allclose(scale * (A @ F(b)), b)
    F.cholesky_inplace(A, beta=2)
    G = F.cholesky(A.astype("float32"))
    assert np.allclose(A @ F(b) + 2 * F(b), b) and G(b.astype("f4")).dtype == "f4"
    F.cholesky_inplace(A.tocsr())   # another format
    assert np.allclose(A @ F(b), b)
    turned = A.copy()
    for j in range(64):   # the same entries in another order
        k = slice(turned.indptr[j], turned.indptr[j + 1])
        turned.indices[k], turned.data[k] = turned.indices[k][::-1].copy(), turned.data[k][::-1].copy()
    turned.has_sorted_indices = False
    F.cholesky_inplace(3 * turned)
    assert np.allclose(3 * (A @ F(b)), b)
    H = trifactor.sparse.cholesky(turned)
    assert np.allclose(A @ H(b), b)
    H.cholesky_inplace(2 * A)
    assert np.allclose(2 * (A @ H(b)), b)
    with pytest.raises(ValueError, match="other entries"):
        F.cholesky_inplace(sp.identity(64, format="csc"))
    with pytest.raises(ValueError, match=r"\(9, 9\)"):
        F.cholesky_inplace(grid(3))


def test_duplicates_are_added_up():
    i = [0, 0, 1, 1, 2, 2]
    A = sp.coo_matrix(([1.0, 3, 2, 2, 3, 6], (i, i)), shape=(3, 3))
    assert np.allclose(trifactor.sparse.cholesky(A)(np.array([4.0, 4, 9])), 1)
    raw = sp.csc_matrix((np.array([1.0, 3, 2]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert np.allclose(trifactor.sparse.cholesky(raw)(np.array([4.0, 2])), 1)
    assert np.allclose(trifactor.sparse.lu(raw)(np.array([4.0, 2])), 1)


@pytest.mark.parametrize("method", ["default", "best", "amd", "metis", "nesdis", "natural", "colamd"])
def test_orderings(rng, method):
    A, b = grid(9), rng.standard_normal(81)
    F = trifactor.sparse.cholesky(A, ordering_method=method)
    assert np.allclose(A @ F(b), b) and sorted(F.P()) == list(range(81))
    assert method not in ("amd", "metis", "natural") or F.plan.ordering == method
    given = rng.permutation(81)
    G = trifactor.sparse.cholesky(A, ordering_method=given)
    assert np.allclose(A @ G(b), b) and G.plan.ordering == "given"


def test_integers_and_sparse_right_hand_sides():
    A = sp.csc_matrix([[4, 1], [1, 3]])
    F = trifactor.sparse.cholesky(A)
    x = F(sp.csc_matrix(np.array([[5.0], [4.0]])))
    assert sp.issparse(x) and np.allclose(x.toarray(), 1)
    assert np.allclose(F(np.array([5 + 5j, 4 + 4j])), 1 + 1j)
    assert np.allclose(F(np.array([5, 4])), 1)


def unsorted(A):
    """The same matrix with the entries of each column or row the other way round."""
    A = A.copy()
    for j in range(A.shape[0]):
        k = slice(A.indptr[j], A.indptr[j + 1])
        A.indices[k], A.data[k] = A.indices[k][::-1].copy(), A.data[k][::-1].copy()
    A.has_sorted_indices = False
    return A


@pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix"])
@pytest.mark.parametrize("lower", [True, False])
def test_indices_may_be_sorted_in_place(rng, kind, lower):
    whole = general(rng, 30)
    whole = getattr(sp, kind)(whole @ whole.T + sp.identity(30))
    b = rng.standard_normal(30)
    for make, again in [(lambda A: trifactor.sparse.cholesky(A, lower=lower), "cholesky_inplace"),
                        (trifactor.sparse.lu, "lu_inplace")]:
        A = unsorted(whole)
        F = make(A)
        A.sort_indices()   # as scipy.sparse.linalg.spsolve does
        assert np.allclose(whole @ F.solve_refined(A, b).x, b)
        getattr(F, again)(2 * A)
        assert np.allclose(2 * (whole @ F.solve(b)), b)
        A = unsorted(whole)
        F = make(A)
        A.indices[:] = A.indices[0]
        with pytest.raises(ValueError, match="other entries"):
            getattr(F, again)(A)


@pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix"])
def test_patterns_are_checked_whichever_triangle_is_read(kind):
    for indptr, indices in [([0, 1, 2, 3], [0, 1, 7]), ([0, 1, 2, 3], [0, 1, -1]), ([0, 2, 1, 3], [0, 1, 2]),
                            ([1, 1, 2, 3], [0, 1, 2]), ([0, 1, 2, 5], [0, 1, 2])]:
        A = getattr(sp, kind)(4 * sp.identity(3))
        A.indptr[:], A.indices[:] = indptr, indices
        texts = []
        for lower in (True, False):
            with pytest.raises(ValueError) as e:
                trifactor.sparse.cholesky(A, lower=lower)
            texts.append(str(e.value))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("form", [list, np.asarray, lambda b: np.asarray(b).astype(np.asarray(b).dtype.newbyteorder()),
                                  sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("real", [True, False])
def test_every_solve_takes_every_right_hand_side(rng, form, real):
    dense = rng.standard_normal((16, 2)) + (0 if real else 1j * rng.standard_normal((16, 2)))
    b = form(dense)
    for dtype in ("float64", "complex128"):
        A = grid(4, dtype)
        F, G = trifactor.sparse.cholesky(A), trifactor.sparse.lu(A)
        for call in (F, F.solve_A, F.solve_LDLt, F.solve_L, F.solve_Lt, F.solve_D, F.solve_LD, F.solve_DLt, F.apply_P,
                     F.apply_Pt, lambda b: F.solve_L(b, False), lambda b: F.solve_Lt(b, False),
                     lambda b: F.solve_refined(A, b).x, G, lambda b: G.solve_refined(A, b, "T").x):
            x, expected = call(b), call(dense.real) + (0 if real else 1j * call(dense.imag))
            assert sp.issparse(x) == sp.issparse(b)
            assert np.allclose(x.toarray() if sp.issparse(x) else x, expected)
        done = F.solve_refined(A, b)
        assert done.steps >= 0 and 0 <= done.backward_error < 1e-13
    batch = trifactor.sparse.analyze(grid(4)).cholesky_batch([grid(4), 2 * grid(4)])
    if not sp.issparse(b):
        x = batch(form(np.array([dense, dense])))
        assert np.allclose(grid(4) @ x[0], dense) and np.allclose(2 * (grid(4) @ x[1]), dense)
    for wrong in (np.ones(1), np.ones(15), np.ones((16, 1, 1)), [[1.0] * 16]):
        for call in (F.solve_A, F.solve_D, F.solve_Lt):
            with pytest.raises(ValueError, match="b has shape"):
                call(wrong)


def test_a_factor_holds_what_it_is_given():
    A = grid(3, "float32")
    F, G = trifactor.sparse.cholesky(A), trifactor.sparse.lu(A)
    batch = trifactor.sparse.analyze(A).cholesky_batch([A])
    for call in (F, F.solve_D, F.solve_Lt, G, batch, lambda b: F.solve_refined(A, b), lambda b: G.solve_refined(A, b)):
        for dtype in ("complex128", "float64"):
            with pytest.raises(TypeError, match=f"b has dtype {dtype} but the factor float32"):
                call(np.ones((1, 9) if call is batch else 9, dtype))
    for F in (F, G):
        assert F(np.ones(9, "c8")).dtype == "c8" and F([1] * 9).dtype == "f4"
        with pytest.raises(TypeError, match="A has dtype float64 but the factor float32"):
            F.solve_refined(grid(3), np.ones(9, "f4"))
    for F in (trifactor.sparse.cholesky(grid(3)), trifactor.sparse.lu(grid(3))):
        assert np.allclose(A @ F.solve_refined(A, np.ones(9)).x, 1)
    swapped = grid(3)
    swapped.data = swapped.data.astype(swapped.dtype.newbyteorder())
    assert np.allclose(A @ trifactor.sparse.cholesky(swapped)(np.ones(9)), 1)


def test_perm_c_is_that_of_scipy(rng):
    from scipy.sparse.linalg import splu
    A = general(rng, 60) + 9 * sp.identity(60, format="csc")
    A = sp.csc_matrix(A)
    Q = lambda perm_c: sp.csc_matrix((np.ones(60), (np.arange(60), perm_c)))
    theirs = splu(A, permc_spec="COLAMD")
    P = sp.csc_matrix((np.ones(60), (theirs.perm_r, np.arange(60))))
    assert abs(P @ A @ Q(theirs.perm_c) - theirs.L @ theirs.U).max() < 1e-12
    ours = trifactor.sparse.lu(A)
    natural = trifactor.sparse.lu(A @ Q(ours.perm_c), ordering="natural")
    assert natural.nnz == ours.nnz < trifactor.sparse.lu(A @ Q(ours.plan.permutation), ordering="natural").nnz
    given = rng.permutation(60)
    F = trifactor.sparse.lu(sp.diags(np.arange(1.0, 61), format="csc"), ordering=given)
    assert np.array_equal(np.argsort(F.perm_c), given)


def test_int64_indices(rng):
    A = grid(5)
    A.indices, A.indptr = A.indices.astype("int64"), A.indptr.astype("int64")
    b = rng.standard_normal(25)
    assert np.allclose(A @ trifactor.sparse.cholesky(A)(b), b) and np.allclose(A @ trifactor.sparse.lu(A)(b), b)


def test_the_failing_column_is_named():
    for column in (0, 7, 24):
        A = sp.lil_matrix(grid(5))
        A[column, column] = -20
        with pytest.raises(trifactor.NotPositiveDefinite, match=f"column {column} ") as e:
            trifactor.sparse.cholesky(A.tocsc())
        assert e.value.column == column and e.value.item is None
    singular = sp.csc_matrix(np.diag([1.0, 0, 2]))
    with pytest.raises(trifactor.Singular, match="column 1 "):
        trifactor.sparse.lu(singular)


def test_a_failed_factor_can_be_used_again(rng):
    A, b = grid(5), rng.standard_normal(25)
    F = trifactor.sparse.cholesky(A)
    with pytest.raises(trifactor.NotPositiveDefinite):
        F.cholesky_inplace(-A)
    with pytest.raises(ValueError):
        F(b)
    F.cholesky_inplace(A)
    assert np.allclose(A @ F(b), b)


@dtypes
@pytest.mark.parametrize("how", [{"tuning": "levels=1"},   # with which the cap counts on the host too
                                 pytest.param({"device": "cuda"}, marks=pytest.mark.cuda)])
def test_the_least_device_memory_works(rng, dtype, how):
    k = 120 if "device" in how else 40   # what must be on a device is small beside the factor
    A, b = grid(k, dtype), rng.standard_normal((k * k, 3)).astype(dtype)
    everything = trifactor.sparse.cholesky(A, **how).memory
    assert everything["host"] == 0
    with pytest.raises(ValueError, match=r"max_device_bytes = 1 must be at least \d+$") as e:
        trifactor.sparse.cholesky(A, max_device_bytes=1, **how)
    least = int(re.search(r"\d+$", str(e.value))[0])
    assert least < everything["total"]
    F = trifactor.sparse.analyze(A, max_device_bytes=least, **how)
    F.cholesky_inplace(2 * A)
    for G, scale in [(F, 2), (F.cholesky(A), 1), (trifactor.sparse.cholesky(A, max_device_bytes=np.int64(least), **how), 1)]:
        assert G.memory["total"] <= least and G.memory["host"] >= everything["factor"]
        assert close(scale * (A @ G(b)), b, dtype)
    enough = trifactor.sparse.cholesky(A, max_device_bytes=everything["total"], **how)
    assert enough.memory == everything


def test_max_device_bytes_does_not_count_on_the_host():
    A = grid(10)
    assert trifactor.sparse.cholesky(A, max_device_bytes=1).memory == trifactor.sparse.cholesky(A).memory


@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2e9, True, "1e9", 2 ** 63, np.float64(8), [1]])
def test_max_device_bytes_is_a_whole_number(wrong):
    words = re.escape(f"max_device_bytes = {wrong!r} must be a whole number from 1 to 2**63 - 1, or None")
    for call in (trifactor.sparse.cholesky, trifactor.sparse.analyze):
        with pytest.raises(ValueError, match=words):
            call(sp.identity(3, format="csc"), max_device_bytes=wrong)


@pytest.mark.parametrize("call, error, words", [
    (lambda: trifactor.sparse.cholesky(np.eye(3)), TypeError, "numpy.ndarray"),
    (lambda: trifactor.sparse.cholesky(sp.csc_matrix((3, 4))), ValueError, r"\(3, 4\)"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3, dtype=np.longdouble)), TypeError, "float128|longdouble"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), mode="fast"), ValueError, "'fast'"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), ordering_method="best2"), ValueError, "'best2'"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), ordering_method=[0, 0, 1]), ValueError, "permutation"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), device="gpu"), ValueError, "'gpu'"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3))(np.ones(4)), ValueError, r"\(4,\)"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3))(np.ones((2, 3, 1))), ValueError, r"\(2, 3, 1\)"),
    (lambda: trifactor.sparse.analyze(sp.identity(3), expected_factorizations=0), ValueError, "0"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), ordering_method=[0.0, 1.0, 2.0]), ValueError,
     r"ordering_method = \[0.0, 1.0, 2.0\] must be one of .*, or a permutation of integers"),
    (lambda: trifactor.sparse.cholesky(sp.identity(3), ordering_method=None), ValueError, "None must .* permutation of"),
    (lambda: trifactor.sparse.lu(sp.identity(3), ordering=np.eye(3, dtype=int)), ValueError, "permutation of integers"),
    (lambda: trifactor.sparse.lu(sp.identity(3), ordering=2.5), ValueError, "ordering = 2.5 must be one of"),
    (lambda: trifactor.sparse.lu(sp.identity(3), ordering="given"), ValueError,
     "ordering = 'given' must be one of 'colamd', 'amd', 'natural', or a permutation of integers"),
    (lambda: trifactor.sparse.lu(sp.identity(3), ordering="metis"), ValueError, "'metis'"),
    (lambda: trifactor.sparse.lu(sp.identity(3), pivot_threshold=2), ValueError, "2"),
    (lambda: trifactor.sparse.lu(sp.identity(3)).solve(np.ones(3), "X"), ValueError, "'X'"),
    (lambda: trifactor.sparse.lu(sp.csc_matrix((3, 4))), ValueError, r"\(3, 4\)"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_missing_device_is_named():
    if trifactor.info()["why_no_cuda"]:
        with pytest.raises(trifactor.DeviceFault, match="CUDA|GPU"):
            trifactor.sparse.cholesky(sp.identity(3), device="cuda")


@dtypes
@formats
def test_lu(rng, dtype, kind):
    A = getattr(sp, kind)(general(rng, 40, dtype))
    M = A.toarray()
    for more in ({}, {"ordering": "amd"}, {"ordering": "natural"}, {"ordering": rng.permutation(40)},
                 {"pivot_threshold": 0.1, "equilibrate": False}):
        F = trifactor.sparse.lu(A, **more)
        for shape in [(40,), (40, 3), (40, 0)]:
            b = rng.standard_normal(shape).astype(dtype)
            assert close(M @ F.solve(b), b, dtype) and F(b).dtype == dtype
            assert close(M.T @ F.solve(b, "T"), b, dtype) and close(M.conj().T @ F.solve(b, "H"), b, dtype)
            assert close(M @ F.solve_refined(A, b).x, b, dtype)
        sign, logabsdet = F.slogdet()
        expected = np.linalg.slogdet(M)
        assert np.isclose(sign, expected[0], atol=1e-3) and np.isclose(logabsdet, expected[1], rtol=1e-3, atol=1e-3)
        assert 0 < F.rcond() <= 1 and F.nnz >= 40 and sorted(F.perm_c) == list(range(40)) and F.shape == (40, 40)
    F.lu_inplace(2 * A)
    assert close(2 * (M @ F(np.ones(40, dtype))), np.ones(40), dtype)


def test_threads_share_a_factor():
    A = grid(60)
    F = trifactor.sparse.cholesky(A)
    wrong = []

    def work(seed):
        b = np.random.default_rng(seed).standard_normal((3600, 1 + seed))
        x = F(b)
        for _ in range(60):
            if not np.array_equal(F(b), x) or not np.allclose(A @ x, b):
                wrong.append(seed)

    in_threads(work)
    assert not wrong


@dtypes
@pytest.mark.parametrize("lower", [True, False])
def test_batch(rng, dtype, lower):
    A = grid(6, dtype)
    n = A.shape[0]
    matrices = [A * (1 + i) + i * sp.identity(n, dtype=dtype, format="csc") for i in range(5)]
    plan = trifactor.sparse.analyze(A, lower=lower)
    for values in (matrices, np.array([M.tocsc().data for M in matrices])):
        F = plan.cholesky_batch(values, beta=0.25)
        assert isinstance(F, trifactor.sparse.FactorBatch) and F.count == 5 and not F.info.any()
        for shape in [(5, n), (5, n, 1), (5, n, 3), (5, n, 0)]:
            b = rng.standard_normal(shape).astype(dtype)
            before = b.copy()
            for x in (F(b), F.solve(np.asfortranarray(b))):
                assert x.dtype == dtype and x.shape == shape and np.array_equal(b, before)
                for i, M in enumerate(matrices):
                    assert close(M @ x[i] + 0.25 * x[i], b[i], dtype)
        for i, M in enumerate(matrices):
            one = plan.cholesky(M, beta=0.25)
            assert np.isclose(F.logdet()[i], one.logdet(), rtol=1e-4) and np.allclose(F.D()[i], one.D(), rtol=1e-4)
        assert F.memory["total"] > 4 * plan.cholesky(A).memory["factor"]


def test_batch_items_fail_alone(rng):
    A = sp.csc_matrix(grid(4))
    values = np.tile(A.data, (4, 1))
    at = int(np.flatnonzero((A.indices == 7) & (np.repeat(np.arange(16), np.diff(A.indptr)) == 7))[0])
    values[2, at] = -1
    plan = trifactor.sparse.analyze(A)
    with pytest.raises(trifactor.NotPositiveDefinite, match="column 7 counted from 0 is not positive, in item 2") as e:
        plan.cholesky_batch(values)
    assert e.value.order == 8 and e.value.item == (2,)
    F = plan.cholesky_batch(values, check=False)
    assert F.info.tolist() == [0, 0, 8, 0]
    b = rng.standard_normal((4, 16))
    x = F(b)
    assert np.array_equal(x[2], b[2]) and all(close(A @ x[i], b[i], "float64") for i in (0, 1, 3))
    assert np.isnan(F.logdet()).tolist() == [False, False, True, False] and np.isnan(F.D()[2]).all()
    values[2, at] = 5
    F.cholesky_inplace(values)
    assert not F.info.any() and np.isfinite(F.logdet()).all()


def test_batch_says_what_is_wrong():
    A = sp.csc_matrix(grid(3))
    entries = len(A.data)
    plan = trifactor.sparse.analyze(A)
    with pytest.raises(ValueError, match=rf"shape \(3, 2\) but must have \(count, {entries}\)"):
        plan.cholesky_batch(np.ones((3, 2)))
    with pytest.raises(TypeError, match="values have dtype float16 but must have float32"):
        plan.cholesky_batch(np.ones((3, entries), dtype="float16"))
    whole = plan.cholesky_batch(np.array([4 * A.data, 8 * A.data]).astype("int64"))   # integers become float64
    assert np.allclose((4 * A).astype("int64") @ whole(np.ones((2, 9)))[0], 1)
    with pytest.raises(ValueError, match="no matrices were given"):
        plan.cholesky_batch([])
    with pytest.raises(ValueError, match=r"A\[1\] has shape \(2, 2\) but \(9, 9\) was analysed"):
        plan.cholesky_batch([A, sp.identity(2, format="csc")])
    none = plan.cholesky_batch(np.ones((0, entries)))
    assert none.count == 0 and none.solve(np.ones((0, 9))).shape == (0, 9) and none.D().shape == (0, 9)
    F = plan.cholesky_batch([A, A])
    for shape in [(9,), (9, 2), (3, 9), (2, 8), (2, 9, 1, 1)]:
        with pytest.raises(ValueError, match=rf"b has shape {re.escape(str(shape))} but must be \(2, 9\) or \(2, 9, k\)"):
            F.solve(np.ones(shape))
    with pytest.raises(ValueError, match=rf"shape \(3, {entries}\) and dtype float64 but those of this object have \(2, {entries}\)"):
        F.cholesky_inplace(np.ones((3, entries)))
