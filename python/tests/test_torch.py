"""PyTorch's tensors, on the host and on a CUDA device."""
import numpy as np
import pytest
import trifactor
from array_cases import Arrays, Cases
from matrices import positive, random, solve_ratio

torch = pytest.importorskip("torch")


class Tensors(Arrays):
    def __init__(self, device):
        self.device = device

    def make(self, x, order="C"):
        t = torch.from_numpy(np.array(x, order="C")).to(self.device)
        return t.mT.contiguous().mT if order == "F" and t.ndim > 1 else t

    def host(self, a):
        return a.cpu().resolve_conj().numpy()

    def is_mine(self, a):
        return isinstance(a, torch.Tensor) and a.device.type == self.device

    def address(self, a):
        return a.data_ptr()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def arrays(request):
    return Tensors(request.param)


class TestTorch(Cases):
    def test_gradients_are_refused(self, arrays):
        with pytest.raises(TypeError, match="detach"):
            trifactor.cholesky(arrays.make(np.eye(3)).requires_grad_())

    def test_dtypes_are_refused(self, arrays):
        for dtype in (torch.float16, torch.bfloat16, torch.int64, torch.int32):
            with pytest.raises(TypeError, match="float32"):
                trifactor.cholesky(torch.eye(3, device=arrays.device).to(dtype))

    def test_conjugate_views(self, arrays, rng):
        A, b = positive(rng, (4, 4), "complex128"), random(rng, (4,), "complex128")
        view = arrays.make(A).conj()   # not yet computed
        x = trifactor.solve(view, arrays.make(b).conj(), assume_a="pos", overwrite_a=True)
        assert solve_ratio(A.conj(), arrays.host(x), b.conj()) < 30

    def test_slices(self, arrays, rng):
        A = positive(rng, (6, 9, 9), "float64")
        t = arrays.make(A)[::2, 1:8:2, 1:8:2]
        b = random(rng, (3, 4), "float64")
        x = arrays.host(trifactor.solve(t, arrays.make(b), assume_a="pos"))
        assert solve_ratio(A[::2, 1:8:2, 1:8:2], x, b) < 30


@pytest.mark.cuda
class TestStreams:
    def test_work_is_in_the_order_of_the_current_stream(self):
        """The matrix is written on a side stream just before the call, after long work: no other order is right."""
        n = 512
        side = torch.cuda.Stream()
        target = torch.zeros(n, n, dtype=torch.float64, device="cuda")
        burn = torch.randn(4096, 4096, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(20):
                burn = burn @ burn / 4096
            target.copy_(4 * torch.eye(n, dtype=torch.float64, device="cuda"))
            F = trifactor.cholesky(target, check=False)
            x = F.solve(torch.ones(n, dtype=torch.float64, device="cuda"))
            total = x.sum()   # later work of the same stream sees the result
        side.synchronize()
        assert abs(total.item() - n / 4) < 1e-9 and F.info.item() == 0

    def test_without_check_the_call_does_not_wait(self):
        import time
        A = torch.eye(256, dtype=torch.float64, device="cuda").repeat(8, 1, 1)
        for _ in range(5):   # memory and graphs are there afterwards
            trifactor.cholesky(A, check=False)
        burn = torch.randn(8192, 8192, device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(30):
            burn = burn @ burn / 8192
        trifactor.cholesky(A, check=False)
        enqueued = time.perf_counter() - begin
        torch.cuda.synchronize()
        assert enqueued < 0.5 * (time.perf_counter() - begin)

    def test_many_streams(self, rng):
        A = positive(rng, (64, 64), "float64")
        t = torch.from_numpy(A).cuda()
        torch.cuda.synchronize()
        for _ in range(40):   # more than are kept
            with torch.cuda.stream(torch.cuda.Stream()):
                F = trifactor.cholesky(t)
                assert np.allclose((F.L @ F.L.mT).cpu(), A)
        trifactor.release_queues()
        assert np.allclose(trifactor.cholesky(t).L.cpu(), np.linalg.cholesky(A))

    def test_host_and_device_do_not_mix(self):
        with pytest.raises(ValueError, match="on CUDA device 0 .* on the host"):
            trifactor.solve(torch.eye(3, device="cuda"), torch.ones(3))
