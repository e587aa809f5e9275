"""What arrays of every other kind must do; `arrays` says how they are made and looked at."""
import numpy as np
import pytest
import trifactor
from matrices import DTYPES, adjoint, factor_ratio, positive, random, solve_ratio

SHAPES = [(1, 1), (5, 5), (40, 40), (3, 4, 4), (2, 3, 6, 6), (0, 3, 3)]


class Arrays:
    """make(x, order): an array of this kind from one of NumPy's. host(a): back. kind: the type of results."""

    mutable = True

    def make(self, x, order="C"):
        raise NotImplementedError

    def host(self, a):
        raise NotImplementedError

    def is_mine(self, a):
        raise NotImplementedError

    def address(self, a):
        raise NotImplementedError


class Cases:
    """Test classes derive from it and have a fixture `arrays`."""

    dtypes = pytest.mark.parametrize("dtype", DTYPES)
    orders = pytest.mark.parametrize("order", ["C", "F"])

    def back(self, arrays, x):
        assert arrays.is_mine(x), type(x)
        return arrays.host(x)

    @dtypes
    @orders
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("lower", [True, False])
    def test_cholesky(self, arrays, rng, dtype, order, shape, lower):
        A = positive(rng, shape, dtype)
        for overwrite in (False, True) if arrays.mutable else (False,):
            given = arrays.make(A, order)
            F = trifactor.cholesky(given, lower, overwrite_a=overwrite)
            if not overwrite:
                assert np.array_equal(arrays.host(given), A)
            elif A.size > 1:
                assert arrays.address(F.L if lower else F.U) == arrays.address(given)
            for b_shape in [(shape[-1],), shape[:-1], (*shape[:-1], 3), (shape[-1], 2)]:
                b = random(rng, b_shape, dtype)
                assert solve_ratio(A, self.back(arrays, F.solve(arrays.make(b))), b) < 30
            L, U = self.back(arrays, F.L), self.back(arrays, F.U)
            assert (L == np.tril(L)).all() and (U == np.triu(U)).all() and factor_ratio(A, L @ adjoint(L)) < 30
            eye = np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
            assert solve_ratio(A, self.back(arrays, F.inverse()), eye) < 30
            assert np.allclose(self.back(arrays, F.log_det()), np.linalg.slogdet(A)[1], atol=1e-3)
            assert not np.any(self.back(arrays, F.info)) and F.dtype == dtype

    @dtypes
    @orders
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("assume_a", ["pos", "gen", None])
    def test_solve(self, arrays, rng, dtype, order, shape, assume_a):
        A = positive(rng, shape, dtype)
        for overwrite in (False, True) if arrays.mutable else (False,):
            for b_shape in [(shape[-1],), shape[:-1], (*shape[:-1], 3), (shape[-1], 2)]:
                given, b = arrays.make(A, order), random(rng, b_shape, dtype)
                x = trifactor.solve(given, arrays.make(b), assume_a=assume_a, overwrite_a=overwrite,
                                    overwrite_b=overwrite)
                assert solve_ratio(A, self.back(arrays, x), b) < 30
                assert overwrite or np.array_equal(arrays.host(given), A)

    @dtypes
    @orders
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_lu(self, arrays, rng, dtype, order, shape):
        A = random(rng, shape, dtype)
        F = trifactor.lu(arrays.make(A, order))
        PA = np.take_along_axis(A, self.back(arrays, F.p)[..., None].astype(int), -2)
        assert factor_ratio(PA, self.back(arrays, F.L) @ self.back(arrays, F.U)) < 30
        for trans, M in ((0, A), (1, np.swapaxes(A, -1, -2)), (2, adjoint(A))):
            b = random(rng, (*shape[:-1], 2), dtype)
            assert solve_ratio(M, self.back(arrays, F.solve(arrays.make(b, order), trans)), b) < 30
        eye = np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
        for X in (F.inverse(), trifactor.inv(arrays.make(A, order), overwrite_a=arrays.mutable)):
            assert solve_ratio(A, self.back(arrays, X), eye) < 100
        for sign, logabsdet in (F.slogdet(), trifactor.slogdet(arrays.make(A, order))):
            expected = np.linalg.slogdet(A)
            assert np.allclose(self.back(arrays, sign), expected[0], atol=1e-3)
            assert np.allclose(self.back(arrays, logabsdet), expected[1], atol=1e-3)

    @dtypes
    def test_rectangles(self, arrays, rng, dtype):
        for shape in [(5, 3), (3, 5), (2, 4, 6)]:
            A = random(rng, shape, dtype)
            F = trifactor.lu(arrays.make(A))
            PA = np.take_along_axis(A, self.back(arrays, F.p)[..., None].astype(int), -2)
            assert factor_ratio(PA, self.back(arrays, F.L) @ self.back(arrays, F.U)) < 30

    @dtypes
    @orders
    def test_ragged(self, arrays, rng, dtype, order):
        A = [positive(rng, (n, n), dtype) for n in (3, 1, 70, 4)]
        b = [random(rng, (len(a),) if len(a) % 2 else (len(a), 2), dtype) for a in A]
        for overwrite in (False, True) if arrays.mutable else (False,):
            def given():
                return [arrays.make(a, order) for a in A]
            rhs = [arrays.make(c) for c in b]
            F, G = trifactor.cholesky(given(), overwrite_a=overwrite), trifactor.lu(given(), overwrite_a=overwrite)
            for xs in (F.solve(rhs), G.solve(rhs), trifactor.solve(given(), rhs, assume_a="pos", overwrite_a=overwrite),
                       trifactor.solve(given(), rhs, assume_a="gen", overwrite_a=overwrite)):
                for a, x, c in zip(A, xs, b):
                    assert solve_ratio(a, self.back(arrays, x), c) < 30
            for a, L, X in zip(A, F.L, F.inverse()):
                L = self.back(arrays, L)
                assert factor_ratio(a, L @ adjoint(L)) < 30
                assert solve_ratio(a, self.back(arrays, X), np.eye(len(a), dtype=dtype)) < 30
            assert np.allclose(self.back(arrays, F.log_det()), [np.linalg.slogdet(a)[1] for a in A], rtol=1e-3)

    def test_failures(self, arrays):
        A = np.tile(np.eye(4), (2, 3, 1, 1))
        A[1, 0, 2, 2] = -1
        with pytest.raises(trifactor.NotPositiveDefinite, match=r"column 2 .*\(1, 0\)"):
            trifactor.cholesky(arrays.make(A))
        F = trifactor.cholesky(arrays.make(A), check=False)
        assert arrays.host(F.info).tolist() == [[0, 0, 0], [3, 0, 0]]
        x = arrays.host(F.solve(arrays.make(np.ones((2, 3, 4)))))
        assert (x == 1).all() and np.isnan(arrays.host(F.log_det())[1, 0])
        good = ~np.isnan(arrays.host(F.inverse()))
        assert not good[1, 0].any() and good.sum() == 5 * 16
        with pytest.raises(trifactor.Singular, match="column 0 "):
            trifactor.solve(arrays.make(np.zeros((3, 3))), arrays.make(np.ones(3)))
        assert trifactor.cholesky(arrays.make(-np.eye(2)), shift_tries=4, shift_first=1).shift > 1

    @pytest.mark.parametrize("assume_a", ["pos", "gen", None])
    def test_no_right_hand_sides(self, arrays, assume_a):
        for shape in [(4, 0), (3, 4, 0), (4, 1, 0)]:
            A = np.broadcast_to(np.eye(shape[-2]), (*shape[:-1], shape[-2]))
            x = trifactor.solve(arrays.make(A), arrays.make(np.zeros(shape)), assume_a=assume_a)
            assert self.back(arrays, x).shape == shape

    def test_promotion(self, arrays, rng):
        A, b = positive(rng, (4, 4), "float64"), random(rng, (4, 2), "complex128")
        x = self.back(arrays, trifactor.solve(arrays.make(A), arrays.make(b)))
        assert x.dtype == "complex128" and solve_ratio(A, x, b) < 30
        with pytest.raises(TypeError, match="complex128.*float64"):
            trifactor.cholesky(arrays.make(A)).solve(arrays.make(b))

    def test_out(self, arrays, rng):
        A, b = positive(rng, (4, 4), "complex128"), random(rng, (4, 2), "complex128")
        for order in "CF":
            out = arrays.make(np.zeros_like(b), order)
            if not arrays.mutable:
                with pytest.raises((TypeError, ValueError), match="out"):
                    trifactor.solve(arrays.make(A), arrays.make(b), out=out)
                continue
            for assume_a in ("pos", "gen"):
                x = trifactor.solve(arrays.make(A), arrays.make(b), assume_a=assume_a, overwrite_a=True, out=out)
                assert x is out and solve_ratio(A, self.back(arrays, out), b) < 30

    @pytest.mark.parametrize("assume_a", ["pos", "gen"])
    def test_out_may_share_memory_with_b(self, arrays, rng, assume_a):
        if not arrays.mutable:
            pytest.skip("these are never overwritten")
        A, x = positive(rng, (4, 4), "float64"), random(rng, (9,), "float64")
        for b, out in [(slice(0, 4), slice(1, 5)), (slice(1, 5), slice(0, 4)), (slice(0, 4), slice(0, 4))]:
            whole = arrays.make(x)
            trifactor.solve(arrays.make(A), whole[b], out=whole[out], assume_a=assume_a)
            assert solve_ratio(A, arrays.host(whole)[out], x[b]) < 30

    def test_one_kind_in_a_call(self, arrays):
        A = arrays.make(np.eye(2))
        with pytest.raises(TypeError, match="numpy"):
            trifactor.solve(A, np.ones(2))
        with pytest.raises(TypeError, match="numpy"):
            trifactor.cholesky(A).solve(np.ones(2))
