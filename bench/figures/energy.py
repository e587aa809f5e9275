"""Analysis and design techniques towards high-performance and energy-efficient dense linear solvers on GPUs (2018)."""
import charts
from figures import Claim, Figure, bench, bound, digits, fastest, last, lines_of, quotients, run, span, variant
from figures.factorizations import (CHOLESKY, HOST_CHOLESKY, HOST_LU, LU, UPDATE, factor_lines, on_cpu, updates_in)
from figures.timelines import beside, block_timelines, timeline, watts

PANEL = bench("panel --n 256 --scalar f64", toy="--m 300", cpu="--m 1024,2048,4096",
              gpu="--m 1024,2048,4096,8192,16384,24576")
# The paper's own panels, which bench/variants has.
DESIGNS = variant("panel --n 256 --m 1024,2048,4096,8192,16384,24576 --design d1,d2-lazy --seconds 0.1")
NARROW = variant("panel --n 8 --m 8192 --design d2-greedy,d2-lazy --seconds 0.1")
BLOCKS = {way: variant(f"trace -m 8192 -n 8 --design d2-{way} -o {{file}}", suffix=".json") for way in ("greedy", "lazy")}
# Row interchanges beside panels of 256 (toy: 8, CPU: 64) columns in a matrix of 1024 (32, 256), and that factorization.
SWAP = bench("swap --scalar f64", toy="--m 64 --n 24 --nb 8", cpu="--m 1024,2048,4096 --n 192 --nb 64",
             gpu="--m 2048,4096,8192,16384,24576 --n 768 --nb 256")
WIDE_PANEL = bench("panel --scalar f64", toy="--m 64 --n 32", cpu="--m 1024,2048,4096 --n 256",
                   gpu="--m 2048,4096,8192,16384,24576 --n 1024")
HYBRID_TRACE = run("trace lu --json --seed 1 -o {file}", toy="--n 40 --device host", cpu="--n 1024 --device host",
                   gpu="--n 10240 --mode hybrid --device cuda", suffix=".json")
GPU_WAYS = "--energy 2 --mode auto,hybrid,cusolver"
ENERGY = {(op, scalar): bench(f"{op} --scalar {scalar}", toy="--n 64 --energy 0.06 --mode auto,lapack",
                              cpu="--n 1024 --energy 2 --mode auto,lapack", gpu=f"--n {n} {GPU_WAYS}")
          for op, scalar, n in (("cholesky", "f64", "8192,24576"), ("cholesky", "f32", "24576"),
                                ("lu", "f64", "8192,16384"), ("lu", "f32", "16384"))}
HOST_ENERGY = {op: bench(f"{op} --scalar f64 --against none --energy 2", gpu="--n 8192", host=True)
               for op in ("cholesky", "lu")}
POWER = {mode: run(f"bench lu --scalar f64 --mode {mode} --against none --json --seed 1 --power {{file}}",
                   toy="--n 16 --device host --seconds 0 --energy 0.2" if mode == "native" else None,
                   cpu="--n 2048 --device host --seconds 2" if mode == "native" else None,
                   gpu="--n 20480 --device cuda --seconds 1", suffix=".power.jsonl") for mode in ("native", "hybrid")}


def over_peer(results, run_of, least=0):
    lines = lines_of(results.rows(run_of), x="m")
    peer = "cusolver" if "cusolver" in lines else "lapack"
    return quotients(lines, "trifactor", peer, least)


def panel_lines(results):
    """Ours, cuSOLVER's, and where they were measured the paper's designs."""
    named = {"d1": "D1", "d2-lazy": "D2"}
    return lines_of(results.rows(PANEL, DESIGNS), x="m", name=lambda row: named.get(row["mode"], row["mode"]))


def lazy_over_greedy(results):
    seconds = {row["mode"]: row["seconds"] for row in results.rows(NARROW)}
    return digits(seconds["d2-greedy"] / seconds["d2-lazy"]) if len(seconds) == 2 else None


def swap_share_lines(results):
    """Percent of the factorization that the interchanges of all panels take."""
    whole = {row["m"]: row["seconds"] for row in results.rows(WIDE_PANEL)}
    lines = {}
    for row in results.rows(SWAP):
        if row["m"] not in whole:
            continue
        panels = (row["n"] + row["nb"]) / row["nb"]
        lines.setdefault("one permutation, ours", {})[row["m"]] = 100 * panels * row["seconds"] / whole[row["m"]]
        if row.get("peer_seconds"):
            peers = lines.setdefault(f"{row['peer']}, laswp", {})
            peers[row["m"]] = 100 * panels * row["peer_seconds"] / whole[row["m"]]
    return lines


def swap_share(results, which):
    found = [line for name, line in swap_share_lines(results).items() if name.endswith(which)]
    return span(found[0], " %") if found else None


def swap_speedup(results):
    return span({row["m"]: row["peer_seconds"] / row["seconds"]
                 for row in results.rows(SWAP) if row.get("peer_seconds")})


def draw_factorization(factor, host, what):
    def draw(results):
        return {suffix: charts.line_chart(f"{what}, {scalar}, {results.machine}",
                                          factor_lines(results, factor, host, scalar),
                                          bounds=bound("fastest BLAS update", fastest(updates_in(results, scalar))))
                for suffix, scalar in (("", "f64"), ("-single", "f32"))}
    return draw


def speed_claims(factor, host, scalar, cusolver, hybrid, cpu):
    def lines(results):
        return factor_lines(results, factor, host, scalar)
    what = "double" if scalar == "f64" else "single"
    return [Claim(f"native over cuSOLVER, {what}", cusolver,
                  lambda r: span(quotients(lines(r), "trifactor", "cusolver"))),
            Claim(f"native over hybrid, {what}", hybrid, lambda r: span(quotients(lines(r), "trifactor", "hybrid"))),
            Claim(f"native over the CPU, {what}, largest common size", cpu,
                  lambda r: last(quotients(lines(r), "trifactor", on_cpu(lines(r)))))]


def efficiency(results):
    """{factorization and scalar: {way: percent of the fastest update}} at the largest size of each."""
    bars = {}
    for what, factor, host in (("Cholesky", CHOLESKY, HOST_CHOLESKY), ("LU", LU, HOST_LU)):
        for scalar in ("f32", "f64"):
            top = fastest(updates_in(results, scalar))
            lines = factor_lines(results, factor, host, scalar)
            if top and lines:
                bars[f"{what} {scalar}"] = {name: 100 * lines[name][max(lines[name])] / top
                                            for name in ("trifactor", "hybrid", "cusolver", "lapack") if name in lines}
    return bars


def percent(results, what):
    value = efficiency(results).get(what, {}).get("trifactor")
    return f"{value:.0f} %" if value else None


def watt_lines(results, op, scalar):
    """Gflop/s/W by size. A row of the CPU counts where its own sensor was read, not the idle GPU's."""
    rows = results.rows(ENERGY[op, scalar]) + (results.rows(HOST_ENERGY[op]) if scalar == "f64" else [])
    counted = [row for row in rows if row.get("gflops_per_watt")
               and (row["device"] == "cuda" or has_cpu_sensor(results))]
    return lines_of(counted, name=lambda row: row["mode"] if row["device"] == "cuda" or row["mode"] != "auto"
                    else "host",
                    y=lambda row: row["gflops_per_watt"], peers=False)


def has_cpu_sensor(results):
    return any(sensor.startswith("RAPL") for sensor in results.machine_info.get("energy_sensors", []))


def draw_watts(op, what):
    def draw(results):
        lines = {f"{name}, {scalar}" if scalar == "f32" else name: line for scalar in ("f64", "f32")
                 for name, line in watt_lines(results, op, scalar).items()}
        if not lines:
            return None
        if max(len(line) for line in lines.values()) < 2:
            return charts.bar_chart(f"{what}, {results.machine}",
                                    {what: {name: max(line.values()) for name, line in lines.items()}},
                                    "Gflop/s/W")
        scalars = "f64 where not named" if any(name.endswith("f32") for name in lines) else "f64"
        return charts.line_chart(f"{what}, {scalars}, {results.machine}", lines, unit="Gflop/s/W")
    return draw


def average_watts(results, op, scalar, way):
    values = list(watt_lines(results, op, scalar).get(way, {}).values())
    return digits(sum(values) / len(values)) if values else None


def table_bars(results):
    return {f"{op} {scalar}": {way: float(average_watts(results, op, scalar, way))
                               for way in ("trifactor", "cusolver", "hybrid", "host")
                               if average_watts(results, op, scalar, way)}
            for op in ("cholesky", "lu") for scalar in ("f32", "f64")}


def draw_table(results):
    bars = {name: bar for name, bar in table_bars(results).items() if bar}
    return charts.bar_chart(f"average Gflop/s/W, {results.machine}", bars, "Gflop/s/W") if bars else None


def frugal_but_slower(results):
    """Where the way with the fewest joules is not the fastest, and saves more than 5 %."""
    found, counted = [], 0
    for (op, scalar), one in ENERGY.items():
        rows = [row for row in results.rows(one) if row.get("joules")
                and (row["device"] == "cuda" or has_cpu_sensor(results))]
        for n in sorted({row["n"] for row in rows}):
            here = [row for row in rows if row["n"] == n]
            fast, frugal = min(here, key=lambda row: row["seconds"]), min(here, key=lambda row: row["joules"])
            counted += 1
            if frugal["joules"] < 0.95 * fast["joules"]:
                saved = 100 * (1 - frugal["joules"] / fast["joules"])
                found.append(f"{op} {scalar} {n}: {frugal['mode']} saves {saved:.0f} %")
    return (", ".join(found) or f"nowhere, of {counted}") if counted else None


TABLE = {("cholesky", "f32"): ("38.91", "36.97", "26.83", "5.08"),
         ("cholesky", "f64"): ("17.70", "17.17", "12.22", "2.44"),
         ("lu", "f32"): ("29.40", "21.85", "20.33", "4.87"), ("lu", "f64"): ("14.64", "12.09", "10.04", "2.56")}


def table_claim(op, scalar, way, paper):
    return Claim(f"{op}, {scalar}, {'native' if way == 'trifactor' else way}, Gflop/s/W", paper,
                 lambda results: average_watts(results, op, scalar, way))


TABLE_CLAIMS = [table_claim(op, scalar, way, paper) for (op, scalar), papers in TABLE.items()
                for way, paper in zip(("trifactor", "cusolver", "hybrid", "host"), papers)]
TABLE_CLAIMS.append(Claim("the fewest joules are not the fewest seconds, by more than 5 %",
                          "hybrid is faster and takes more",
                          frugal_but_slower))


def draw_power(results):
    lines = {f"{sensor}, {mode}": line for mode, one in POWER.items() if one in results.files
             for sensor, line in watts(results.files[one])[0].items()}
    return charts.line_chart(f"watts during LU factorizations, {results.machine}", lines, "seconds", "W",
                             steps=True) if lines else None


def cpu_watts(results):
    average = {mode: [w for sensor, w in watts(results.files[one])[1].items() if sensor.startswith("RAPL")]
               for mode, one in POWER.items() if one in results.files}
    if not average.get("native") or not average.get("hybrid"):
        return None
    return f"{sum(average['hybrid']) / sum(average['native']):.1f}"


def figure(number, title, runs, draw, claims=(), note=""):
    return Figure(f"energy:{number}", title, runs, draw, list(claims), note)


SPEED_RUNS = {"Cholesky": [CHOLESKY["f64"], CHOLESKY["f32"], HOST_CHOLESKY["f64"], HOST_CHOLESKY["f32"], UPDATE],
              "LU": [LU["f64"], LU["f32"], HOST_LU["f64"], HOST_LU["f32"], UPDATE]}
SENSORS = "where the CPU has no readable sensor the joules are the GPU's alone, and there is no row of the CPU"
FIGURES = [
    Figure("energy:8", "blocks inside the fused panel kernel", [*BLOCKS.values(), NARROW],
           block_timelines(BLOCKS, "blocks of D2, 8192 x 8, f64"),
           [Claim("lazy over greedy, 8192 x 8", "above 1", lazy_over_greedy)],
           cannot="the paper's kernel D2, a block for each column, is in bench/variants: it needs a GPU, and "
           "trifactor_variants. A panel of the library is one cluster of blocks that share the rows, and keeps no log"),
    figure(9, "panels of 256 columns by height", [PANEL, DESIGNS],
           lambda results: charts.line_chart(f"LU of m x 256, f64, {results.machine}", panel_lines(results), "m"),
           [Claim("fused panel over cuSOLVER, tallest", "2.4", lambda r: last(over_peer(r, PANEL))),
            Claim("over all heights", "above 1", lambda r: span(over_peer(r, PANEL))),
            Claim("D2 over D1, tallest", "1.8", lambda r: last(quotients(panel_lines(r), "D2", "D1"))),
            Claim("D2 over cuSOLVER, tallest", "2.4", lambda r: last(quotients(panel_lines(r), "D2", "cusolver"))),
            Claim("ours over D2", "", lambda r: span(quotients(panel_lines(r), "trifactor", "D2")))],
           "D1 and D2 are the paper's designs, in bench/variants"),
    figure(10, "row interchanges", [SWAP, WIDE_PANEL],
           lambda results: charts.line_chart(f"row interchanges of LU, f64, {results.machine}",
                                             swap_share_lines(results), "m", "% of time"),
           [Claim("one permutation over laswp", "2.4 to 4.9", swap_speedup),
            Claim("part of the factorization, laswp", "19 to 20 %", lambda r: swap_share(r, "laswp")),
            Claim("part of the factorization, permutation", "7 to 8 %", lambda r: swap_share(r, "ours"))],
           "the interchanges of all panels made alone, over the time of our whole factorization"),
    figure(12, "Cholesky where the CPU is slower", SPEED_RUNS["Cholesky"],
           draw_factorization(CHOLESKY, HOST_CHOLESKY, "Cholesky"),
           speed_claims(CHOLESKY, HOST_CHOLESKY, "f32", "1.10", "above 1 below 10k", "10")
           + speed_claims(CHOLESKY, HOST_CHOLESKY, "f64", "1.0", "above 1 below 10k", "10"),
           "the paper's third system, a POWER8 with a P100; this machine"),
    figure(13, "LU", SPEED_RUNS["LU"], draw_factorization(LU, HOST_LU, "LU"),
           speed_claims(LU, HOST_LU, "f64", "1.15 to 1.50", "0.9 to 1.0", "6")
           + speed_claims(LU, HOST_LU, "f32", "1.30 to 1.50", "0.9 to 1.0", "6"),
           "columns are stored one after the other; the transposed layout of the paper does not exist here"),
    figure(14, "LU where the CPU is slower", SPEED_RUNS["LU"], draw_factorization(LU, HOST_LU, "LU"),
           speed_claims(LU, HOST_LU, "f64", "1.17", "up to 2.03", "12")
           + speed_claims(LU, HOST_LU, "f32", "1.33", "up to 2.6", "10"),
           "the paper's third system, a POWER8 with a P100; this machine"),
    figure(15, "the panel on the CPU beside the update", [HYBRID_TRACE], timeline(HYBRID_TRACE),
           [Claim("part of the panels beside the update", "all (fast CPU), part (slow CPU)", beside(HYBRID_TRACE))]),
    figure(16, "part of the speed of GEMM", SPEED_RUNS["Cholesky"] + SPEED_RUNS["LU"],
           lambda results: charts.bar_chart(f"speed at the largest n beside the updates alone, {results.machine}",
                                            efficiency(results), "% of the fastest update", {"fastest update": 100})
           if efficiency(results) else None,
           [Claim("Cholesky, double", "above 90 %", lambda r: percent(r, "Cholesky f64")),
            Claim("Cholesky, single", "above 90 %", lambda r: percent(r, "Cholesky f32")),
            Claim("LU, double", "above 80 %", lambda r: percent(r, "LU f64")),
            Claim("LU, single", "above 80 %", lambda r: percent(r, "LU f32"))]),
    figure(17, "Gflop/s/W of Cholesky", [ENERGY["cholesky", "f64"], ENERGY["cholesky", "f32"], HOST_ENERGY["cholesky"]],
           draw_watts("cholesky", "Cholesky"), note=SENSORS),
    figure(18, "Gflop/s/W of LU", [ENERGY["lu", "f64"], ENERGY["lu", "f32"], HOST_ENERGY["lu"]], draw_watts("lu", "LU"),
           note=SENSORS),
    figure(19, "watts over time during LU", list(POWER.values()), draw_power,
           [Claim("watts of the CPU, hybrid over native", "at least 4", cpu_watts)], SENSORS),
    figure("table-1", "average Gflop/s/W", [*ENERGY.values(), *HOST_ENERGY.values()], draw_table, TABLE_CLAIMS,
           SENSORS),
]
