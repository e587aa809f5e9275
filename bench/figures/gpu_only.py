"""High-performance Cholesky factorization for GPU-only execution (GPGPU-10, 2017)."""
import charts
from figures import Claim, Figure, bench, bound, fastest, last, lines_of, quotients, run, span
from figures.factorizations import CHOLESKY, HOST_CHOLESKY, UPDATE, factor_lines, on_cpu, updates_in
from figures.timelines import beside, timeline

STEPS = bench("update --each --looking left,right", toy="--n 32 --nb 8 --scalar f64",
              cpu="--n 2048 --nb 256 --scalar f32",
              gpu="--n 20480 --nb 512 --scalar f32")
LOOPS = bench("tile", toy="--n 16 --leaf 16 --ib 8", cpu="--n 128,256,512 --leaf 1024 --ib 8,16,32",
              gpu="--n 128,256,512 --leaf 1024 --ib 8,16,32")
RECURSION = bench("tile --form inclusive", toy="--n 16 --leaf 8,16", cpu="--n 128,256,512,1024",
                  gpu="--n 128,256,512,1024")
TRACE = {side: run(f"trace cholesky --json --seed 1 -o {{file}} --tuning 'whole=0 persistent=0 looking={side}'",
                   toy="--n 40 --device host",
                   cpu="--n 2048 --device host", gpu="--n 8192 --device cuda", suffix=".json")
                   for side in ("left", "right")}


def update_lines(results):
    return lines_of(results.rows(UPDATE), x="nb", name=lambda row: f"{row['scalar']} {row['looking']}-looking")


def smallest_good_nb(results, scalar):
    """The smallest nb whose better way of looking is within a tenth of the fastest."""
    rows = updates_in(results, scalar)
    good = [row["nb"] for row in rows if row["gflops"] >= 0.9 * fastest(rows)]
    return str(min(good)) if good else None


def draw_updates(results):
    n = max(row["n"] for row in results.rows(UPDATE))
    return charts.line_chart(f"updates of order {n} by block width, {results.machine}", update_lines(results), "nb")


def draw_steps(results):
    rows = results.rows(STEPS)
    title = f"updates step by step, {rows[0]['scalar']}, n = {rows[0]['n']}, nb = {rows[0]['nb']}, {results.machine}"
    return charts.line_chart(title, lines_of(rows, x=lambda row: row["first"] // row["nb"],
                                             name=lambda row: row["looking"] + "-looking"),
                             "step")


def loop_lines(results):
    return lines_of(results.rows(LOOPS),
                    name=lambda row: "inclusive" if row["form"] == "inclusive" else f"exclusive, ib = {row['ib']}",
                    peers=False)


def best_exclusive(results):
    lines = loop_lines(results)
    slower = [q for name in lines if name != "inclusive" for q in quotients(lines, "inclusive", name).values()]
    return span(slower)


def recursion_lines(results):
    return lines_of(results.rows(RECURSION),
                    name=lambda row: "not halved" if row["leaf"] >= row["n"] else f"halved to {row['leaf']}",
                    peers=False)


def gain_of_recursion(results):
    lines = recursion_lines(results)
    if "not halved" not in lines:
        return None
    n = max(lines["not halved"])
    halved = [line[n] for name, line in lines.items() if name != "not halved" and n in line]
    return f"{max(halved) / lines['not halved'][n]:.2f} (n = {n})" if halved else None


def draw_factorization(scalar):
    def draw(results):
        lines = factor_lines(results, CHOLESKY, HOST_CHOLESKY, scalar)
        return charts.line_chart(f"Cholesky, {scalar}, {results.machine}", lines,
                                 bounds=bound("fastest BLAS update", fastest(updates_in(results, scalar))))
    return draw


def speed_claims(scalar, over_cusolver, over_cpu):
    def lines(results):
        return factor_lines(results, CHOLESKY, HOST_CHOLESKY, scalar)
    return [
        Claim("GPU-only over cuSOLVER, all sizes", over_cusolver,
              lambda r: span(quotients(lines(r), "trifactor", "cusolver"))),
        Claim("GPU-only over hybrid, largest size", "1.0", lambda r: last(quotients(lines(r), "trifactor", "hybrid"))),
        Claim("left- over right-looking, largest size", "slightly above 1" if scalar == "f32" else "1.0",
              lambda r: last(quotients(lines(r), "native-left", "native-right"))),
        Claim("over the CPU, largest common size", over_cpu,
              lambda r: last(quotients(lines(r), "trifactor", on_cpu(lines(r))))),
    ]


def figure(number, title, runs, draw, claims=(), note=""):
    return Figure(f"gpu-only:{number}", title, runs, draw, list(claims), note)


ONE_GPU = "the paper has one figure for a K40c and one for a P100; both are this machine"
NB_CLAIMS = [Claim("smallest nb near the fastest update, double", "256 to 512", lambda r: smallest_good_nb(r, "f64")),
             Claim("the same, single", "512 to 1,024", lambda r: smallest_good_nb(r, "f32"))]
FIGURES = [
    figure(4, "speed of the updates by block width", [UPDATE], draw_updates, note=ONE_GPU),
    figure(5, "speed of the updates by block width", [UPDATE], draw_updates, NB_CLAIMS, ONE_GPU),
    figure(6, "the updates step by step", [STEPS], draw_steps, note=ONE_GPU),
    figure(7, "the updates step by step", [STEPS], draw_steps, note=ONE_GPU),
    figure(9, "the loop inside the tile's kernel, or outside", [LOOPS], lambda results: charts.line_chart(
        f"diagonal tile, f64, {results.machine}", loop_lines(results)),
        [Claim("loop-inclusive over loop-exclusive", "above 1 for each ib", best_exclusive)]),
    figure(10, "recursion in the tile", [RECURSION], lambda results: charts.line_chart(
        f"diagonal tile by recursion, f64, {results.machine}", recursion_lines(results)), note=ONE_GPU),
    figure(11, "recursion in the tile", [RECURSION], lambda results: charts.line_chart(
        f"diagonal tile by recursion, f64, {results.machine}", recursion_lines(results)),
        [Claim("recursive over not, largest tile", "above 1: needed for large nb", gain_of_recursion)], ONE_GPU),
    figure(12, "the tile beside the update, right-looking", [TRACE["right"]], timeline(TRACE["right"]),
           [Claim("part of the side lane beside the update", "overlapped", beside(TRACE["right"]))]),
    figure(13, "the tile beside the update, left-looking", [TRACE["left"]], timeline(TRACE["left"]),
           [Claim("part of the side lane beside the update", "overlapped", beside(TRACE["left"]))]),
    figure(14, "Cholesky, single", [CHOLESKY["f32"], HOST_CHOLESKY["f32"], UPDATE], draw_factorization("f32"),
           note=ONE_GPU),
    figure(15, "Cholesky, double", [CHOLESKY["f64"], HOST_CHOLESKY["f64"], UPDATE], draw_factorization("f64"),
           note=ONE_GPU),
    figure(16, "Cholesky, single", [CHOLESKY["f32"], HOST_CHOLESKY["f32"], UPDATE], draw_factorization("f32"),
           speed_claims("f32", "above 1.10", "8")),
    figure(17, "Cholesky, double", [CHOLESKY["f64"], HOST_CHOLESKY["f64"], UPDATE], draw_factorization("f64"),
           speed_claims("f64", "1.05 to 1.10", "7 to 8") + [
               Claim("of the fastest update, largest size", "close to it", lambda r: part_of_bound(r, "f64"))]),
]


def part_of_bound(results, scalar):
    line = factor_lines(results, CHOLESKY, HOST_CHOLESKY, scalar).get("trifactor")
    top = fastest(updates_in(results, scalar))
    return f"{100 * line[max(line)] / top:.0f} %" if line and top else None
