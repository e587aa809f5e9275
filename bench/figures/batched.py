"""Fast Cholesky factorization on GPUs for batch and native modes in MAGMA (JCS, 2017)."""
import charts
from figures import Claim, Figure, bench, bound, fastest, last, lines_of, quotients, span
from figures.factorizations import CHOLESKY, HOST_CHOLESKY, UPDATE, factor_lines, on_cpu, updates_in

LOOPS = [bench(f"batch --scalar f64 --tuning '{tuning}'", toy="--n 16 --count 3", cpu="--n 64,128,256 --count 50",
               gpu="--n 128,256,512 --count 300")
         for tuning in ("whole=2147483647", "whole=0 persistent=0 nb=512 leaf=512 tile=exclusive ib=16",
                        "whole=0 persistent=0 nb=512 leaf=512 tile=exclusive ib=32")]
SCHEDULES = {name: bench(f"batch --scalar f64 --against none --tuning '{tuning}'", toy="--sizes 8 --n 8,15 --count 5",
                         cpu="--sizes 96 --n 96,128,191 --count 100",
                         gpu="--sizes 384 --n 384,448,512,640,767 --count 1000")
             for name, tuning in {"in steps, all begin at once": "whole=0 persistent=0 nb=64 leaf=64",
                                  "a block an item, unsorted": "sorted=2147483647 persistent=0",
                                  "sorted by size": "sorted=1"}.items()}
TRSM = bench("batch --method solve --scalar f64", toy="--n 16 --count 3 --rhs 4", cpu="--n 128,256 --count 50 --rhs 64",
             gpu="--n 128,256,512 --count 300 --rhs 256")
CROSSOVER = {name: bench(f"batch --scalar f64 --tuning '{tuning}'", toy="--n 4,16 --count 5",
                         cpu="--n 16,64,128,256 --count 50",
                         gpu="--n 16,32,64,128,256,384,512 --count 1000")
             for name, tuning in {"one kernel": "whole=2147483647", "blocked": "whole=0 persistent=0"}.items()}
FIXED = bench("batch", toy="--n 4,16 --count 5 --scalar f64", cpu="--n 16,32,64,128 --count 200 --scalar f32,f64",
              gpu="--n 16,32,64,128,256,384,512 --count 1000 --scalar f32,f64")
FIXED_HOST = bench("batch --against lapack --scalar f32,f64", gpu="--n 16,32,64,128,256 --count 1000", host=True)
# Sizes uniform in 1 .. 2 mean - 1.
VARIABLE = [bench(f"batch --sizes {mean} --n {2 * mean - 1}", toy="--count 5 --scalar f64" if mean == 16 else None,
                  cpu="--count 200 --scalar f32,f64" if mean <= 64 else None,
                  gpu="--count 1000 --scalar f32,f64 --against none") for mean in (16, 32, 64, 128, 256)]
VARIABLE_HOST = [bench(f"batch --sizes {mean} --n {2 * mean - 1} --against lapack --scalar f32,f64", gpu="--count 1000",
                       host=True)
                 for mean in (16, 32, 64)]


def loop_name(row):
    return "loop inside" if "ib=" not in row["tuning"] else "loop outside, ib = " + row["tuning"].rsplit("=", 1)[1]


def loop_lines(results):
    return lines_of(results.rows(*LOOPS), name=loop_name)


def outside_over_inside(results):
    lines = loop_lines(results)
    return span([q for name in lines if name.startswith("loop outside")
                 for q in quotients(lines, name, "loop inside").values()])


def schedule_lines(results):
    lines = {}
    for name, one in SCHEDULES.items():
        lines.update(lines_of(results.rows(one), name=lambda row: name))
    return lines


def lost_by_variation(results, name):
    """How much slower the widest spread of sizes is than none."""
    line = schedule_lines(results).get(name)
    return f"{100 * (1 - line[max(line)] / line[min(line)]):.0f} %" if line else None


def crossover_lines(results):
    lines = {}
    for name, one in CROSSOVER.items():
        lines.update(lines_of(results.rows(one), name=lambda row: name, peers=False))
    return lines


def batch_lines(results, ours, hosts, scalar):
    """Ours, the peers', and on a GPU the CPU's: LAPACK in a parallel loop."""
    rows = [row for row in results.rows(*ours) if row["scalar"] == scalar]
    lines = lines_of(rows)
    on_host = lines_of([row for row in results.rows(*hosts) if row["scalar"] == scalar],
                       name=lambda row: "trifactor on the host")
    lines.update({name: line for name, line in on_host.items() if name not in lines})
    return lines


def draw_batches(ours, hosts, what):
    return lambda results: {suffix: charts.line_chart(f"batched Cholesky, {what}, {scalar}, {results.machine}",
                                                      batch_lines(results, ours, hosts, scalar),
                                                      "n" if what.startswith("one size") else "largest n")
                            for suffix, scalar in (("", "f64"), ("-single", "f32"))}


def over_cpu(ours, hosts, scalar):
    return lambda results: span(quotients(batch_lines(results, ours, hosts, scalar), "trifactor", "lapack"))


def over_cusolver(results, scalar):
    return span(quotients(batch_lines(results, [FIXED], [FIXED_HOST], scalar), "trifactor", "cusolver"))


def draw_native(results):
    return {suffix: charts.line_chart(f"Cholesky of one matrix, {scalar}, {results.machine}",
                                      factor_lines(results, CHOLESKY, HOST_CHOLESKY, scalar),
                                      bounds=bound("fastest BLAS update", fastest(updates_in(results, scalar))))
            for suffix, scalar in (("", "f64"), ("-single", "f32"))}


def native_over_cpu(scalar):
    def ours(results):
        lines = factor_lines(results, CHOLESKY, HOST_CHOLESKY, scalar)
        return last(quotients(lines, "trifactor", on_cpu(lines)))
    return ours


def figure(number, title, runs, draw, claims=(), note=""):
    return Figure(f"batched:{number}", title, runs, draw, list(claims), note)


FIGURES = [
    figure(5, "the loop over ib columns inside the kernel, or outside", LOOPS,
           lambda results: charts.line_chart(f"batched Cholesky, where the loop over columns is, f64, {results.machine}",
                                             loop_lines(results)),
           [Claim("loop outside (exclusive) over inside (inclusive)", "above 1: occupancy", outside_over_inside)]),
    figure(6, "sizes around a mean: schedules", list(SCHEDULES.values()),
           lambda results: charts.line_chart(f"batched Cholesky, sizes around 384 up to n, f64, {results.machine}",
                                             schedule_lines(results), "largest n"),
           [Claim("lost by the widest variation, all items at once (greedy)", "25 %",
                  lambda r: lost_by_variation(r, "in steps, all begin at once")),
            Claim("lost by the widest variation, best schedule (lazy)", "none",
                  lambda r: lost_by_variation(r, "sorted by size"))],
           "ours has no lazy schedule: it won no size, and items sorted by size take its place"),
    figure(7, "solves with triangles of a batch", [TRSM],
           lambda results: charts.line_chart(f"solves with Cholesky factors of a batch, f64, {results.machine}",
                                             lines_of(results.rows(TRSM))),
           [Claim("over cuBLAS", "4 to 5", lambda r: span(quotients(lines_of(r.rows(TRSM)), "trifactor", "cublas")))],
           "both triangles of a factor, by size, in place of one triangle by the width of its inverted blocks"),
    figure(8, "one kernel, or the blocked driver", list(CROSSOVER.values()),
           lambda results: charts.line_chart(f"batched Cholesky, one kernel or blocked, f64, {results.machine}",
                                             crossover_lines(results)),
           [Claim("one kernel over blocked, n below 400", "1.12 to 4",
                  lambda r: span({x: q for x,
                                  q in quotients(crossover_lines(r), "one kernel", "blocked").items() if x < 400}))]),
    figure(9, "one size", [FIXED, FIXED_HOST], draw_batches([FIXED], [FIXED_HOST], "one size"),
           [Claim("over LAPACK in a loop on the CPU, double", "1.2 to 2.5", over_cpu([FIXED], [FIXED_HOST], "f64")),
            Claim("the same, single", "1.75 to 5", over_cpu([FIXED], [FIXED_HOST], "f32")),
            Claim("over cuSOLVER's potrfBatched, double", "", lambda r: over_cusolver(r, "f64"))]),
    figure(10, "sizes uniform in 1 .. n", [*VARIABLE, *VARIABLE_HOST],
           draw_batches(VARIABLE, VARIABLE_HOST, "sizes in 1 .. n"),
           [Claim("over LAPACK in a loop on the CPU, double", "1.2 to 2", over_cpu(VARIABLE, VARIABLE_HOST, "f64")),
            Claim("the same, single", "1.2 to 4", over_cpu(VARIABLE, VARIABLE_HOST, "f32"))]),
    figure(11, "one large matrix", [CHOLESKY["f64"], CHOLESKY["f32"], HOST_CHOLESKY["f64"], HOST_CHOLESKY["f32"],
                                    UPDATE], draw_native,
           [Claim("over the CPU, double, largest common size", "4.1", native_over_cpu("f64")),
            Claim("the same, single", "4.2 to 9.8", native_over_cpu("f32"))]),
]
