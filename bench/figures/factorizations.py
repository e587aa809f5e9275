"""Runs of one large matrix, which several papers show: Cholesky and LU, every way, and the updates that bound them."""
from figures import bench, lines_of

WAYS = {"toy": "auto,lapack", "cpu": "auto,lapack", "gpu": "auto,hybrid,cusolver"}
LOOKING = {"toy": "auto,native-left,native-right,lapack", "cpu": "auto,native-left,native-right,lapack",
           "gpu": "auto,native-left,native-right,hybrid,cusolver"}
SIZES = {"toy": "8,24", "cpu": "256,512,1024,2048", "gpu": "1024,2048,4096,8192,16384,24576"}
LU_SIZES = {"toy": "8,24", "cpu": "256,512,1024,2048", "gpu": "1024,2048,4096,8192,16384"}


def of_scales(template, *parts):
    return {scale: template.format(*(part[scale] for part in parts)) for scale in ("toy", "cpu", "gpu")}


CHOLESKY = {scalar: bench(f"cholesky --scalar {scalar}", **of_scales("--n {} --mode {}", SIZES, LOOKING))
            for scalar in ("f64", "f32")}
LU = {scalar: bench(f"lu --scalar {scalar}", **of_scales("--n {} --mode {}", LU_SIZES, WAYS))
      for scalar in ("f64", "f32")}
# The CPU alone beside a GPU: elsewhere the runs above have it.
HOST_CHOLESKY = {scalar: bench(f"cholesky --scalar {scalar} --against none", gpu="--n 1024,2048,4096,8192", host=True)
                 for scalar in ("f64", "f32")}
HOST_LU = {scalar: bench(f"lu --scalar {scalar} --against none", gpu="--n 1024,2048,4096,8192", host=True)
           for scalar in ("f64", "f32")}
UPDATE = bench("update --looking left,right", toy="--n 48 --nb 8,16 --scalar f64",
               cpu="--n 1536 --nb 64,128,256,512 --scalar f32,f64",
               gpu="--n 10240 --nb 64,128,256,512,1024 --scalar f32,f64")


def factor_lines(results, factor, host, scalar, y=lambda row: row["gflops"]):
    """A line for each way; the CPU's own is "host"."""
    lines = lines_of(results.rows(factor[scalar]), y=y)
    lines.update(lines_of(results.rows(host[scalar]), name=lambda row: "host", y=y))
    return lines


def on_cpu(lines):
    """The line of the CPU: "host" beside a GPU, and LAPACK elsewhere."""
    return "host" if "host" in lines else "lapack"


def updates_in(results, scalar):
    return [row for row in results.rows(UPDATE) if row["scalar"] == scalar]
