#!/usr/bin/env python3
"""Draws the rows of bench/results/*.jsonl over n, from zero to peak, a line for each mode and peer.

    scripts/plot_results.py                              # every picture that the rows give, into docs/pictures
    scripts/plot_results.py rows.jsonl --peak f64=67000  # these rows, with the line of the machine's peak
    scripts/plot_results.py power.csv                    # watts over time, of trifactor power and bench --power

One picture for each machine, operation and scalar: cholesky-f64-nvidia-h200.svg. Where a point was measured several
times the last row counts. Updates are drawn over nb, one picture for each n. Batches have several: Gflop/s and the part of the
speed of a copy, for Cholesky of one size, ragged, LU and the others, and one for each preset, with a line for each setting.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree

import charts

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read_rows(files):
    rows = []
    for file in files:
        for number, line in enumerate(pathlib.Path(file).read_text().splitlines(), 1):
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                sys.exit(f"{file}:{number}: not a JSON object: {error}")
    return rows


def line_name(row):
    """What a line of a picture stands for."""
    if row["op"] == "tile":
        if row.get("form") == "exclusive":
            return f"in steps of {row['ib']}"
        return f"leaf {row['leaf']}" if row["leaf"] < row["n"] else "not halved"
    if row["op"] == "update":
        return row["looking"] + "-looking"
    name = "trifactor" if row["mode"] == "auto" else row["mode"]
    if row["op"] == "solve":
        name += f", {row['nrhs']} right-hand side" + ("s" if row["nrhs"] > 1 else "")
    return name


Picture = collections.namedtuple("Picture", "op detail scalar machine unit", defaults=["Gflop/s"])
OF_COPY = "% of a copy's speed"


def batch_points(row):
    """(detail, unit, line, y) for what a row of a batch adds to pictures."""
    if row.get("preset") and row["tuning"]:
        yield row["preset"], "Gflop/s", row["tuning"], row["gflops"]
        return
    ragged = row["kind"] == "ragged"
    if row["tuning"] or row["kind"] == "pointers" or row.get("sizes", "uniform") != "uniform":
        return                                        # a trial, or one item among others
    if not ragged and not row.get("peer_seconds"):
        return                                        # compares triangles
    detail = "ragged" if ragged else row["method"] or ("few" if row["count"] < 100 else "")
    name = "trifactor" if ragged else f"trifactor, {row['count']:,} items"
    yield detail, "Gflop/s", name, row["gflops"]
    if row.get("part_of_copy"):
        yield detail, OF_COPY, name, 100 * row["part_of_copy"]
    if row.get("fixed_ratio"):
        yield detail, "Gflop/s", "sum of fixed sizes", row["gflops"] / row["fixed_ratio"]
    if row.get("peer_seconds") and not ragged:
        name = f"{row['peer']}, {row['count']:,} items"
        yield detail, "Gflop/s", name, row["gflops"] / row["ratio"]
        if row.get("part_of_copy"):
            yield detail, OF_COPY, name, 100 * row["part_of_copy"] / row["ratio"]


def by_own_words(lines):
    """Lines that are named by their tuning, under the words that no other has, or at least not all others."""
    if not all("=" in name for name in lines):
        return lines
    having = collections.Counter(word for name in lines for word in name.split())
    def own(name, most):
        return " ".join(word for word in name.split() if having[word] <= most)
    return {own(name, 1) or own(name, len(lines) - 1) or "without": line for name, line in lines.items()}


def pictures(rows):
    """{Picture: {line: {x: y}}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        if row.get("uplo") == "upper" or row.get("first") is not None:
            continue                                  # both triangles cost the same; single steps are no curve
        op, scalar, machine = row["op"], row["scalar"], row["machine"]
        if op == "batch":
            for detail, unit, line, y in batch_points(row):
                found[Picture(op, detail, scalar, machine, unit)][line][row["n"]] = y
            continue
        if row["mode"] == "auto" and row.get("tuning"):
            continue                                  # a trial
        if row.get("form") == "exclusive" and row["leaf"] < row["n"]:
            continue                                  # tiles are drawn halved, or in steps, not both
        picture, x = Picture(op, str(row["n"]) if op == "update" else "", scalar, machine), row["nb" if op == "update" else "n"]
        found[picture][line_name(row)][x] = row["gflops"]
        if row.get("peer") and row.get("peer_seconds"):
            name = row["peer"]
            if op == "solve":
                name += line_name(row)[line_name(row).index(","):]
            found[picture][name].setdefault(x, row["gflops"] * row["seconds"] / row["peer_seconds"])
    return {picture: by_own_words(lines) for picture, lines in found.items()}


def title_of(op, detail):
    """"batched Cholesky, ragged"."""
    if op == "update":
        return f"updates of order {detail}"
    if op == "batch" and detail.startswith("lu"):
        return "batched LU"
    named = {"batch": "batched Cholesky", "cholesky": "Cholesky", "lu": "LU", "tile": "diagonal tile"}
    return ", ".join(filter(None, (named.get(op, op), detail)))


def draw(picture, lines, peak):
    op, detail, scalar, machine, unit = picture
    across = "nb" if op == "update" else "largest n" if detail in ("ragged", "schedule") else "n"
    what = title_of(op, detail)
    highest = max(max(line.values()) for line in lines.values())
    if unit == OF_COPY:
        return charts.line_chart(f"{what}, {scalar}, {machine}", lines, across, unit, top=100)
    bounds = {"peak": peak} if peak else {}
    top = peak if peak and peak >= highest else None  # the upper edge is the peak
    return charts.line_chart(f"{what}, {scalar}, {machine}", lines, across, unit, bounds, top)


def read_power(file):
    """{sensor: {seconds: watts}} of a file that trifactor power or bench --power wrote; None of another file."""
    text = pathlib.Path(file).read_text()
    if str(file).endswith(".csv"):
        rows = list(csv.DictReader(text.splitlines()))
        if not rows or "watts" not in rows[0]:
            return None
        samples = [(row["what"], float(row["begin_s"]), float(row["end_s"]), float(row["watts"]))
                   for row in rows if row["watts"]]
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        if not rows or not any("watts" in row for row in rows):
            return None
        samples = [(row["sensor"], row["begin"], row["end"], row["watts"]) for row in rows if "watts" in row]
    lines = collections.defaultdict(dict)
    for sensor, begin, end, watts in samples:
        lines[sensor][begin + 1e-6] = watts
        lines[sensor][end] = watts
    return lines


def file_name(picture):
    words = [picture.op] + ["copy"] * (picture.unit == OF_COPY) + [picture.detail, picture.scalar, picture.machine.split(",")[0]]
    if picture.op == "update":
        words = [picture.op, picture.scalar, picture.detail, picture.machine.split(",")[0]]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-") + ".svg"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="rows of trifactor bench --json [bench/results/*.jsonl]")
    parser.add_argument("--output", default=ROOT / "docs" / "pictures", type=pathlib.Path)
    parser.add_argument("--op", default="cholesky,update,tile,batch", help="operations to draw [%(default)s]")
    parser.add_argument("--peak", action="append", default=[], help="scalar=Gflop/s, such as f64=67000")
    parser.add_argument("--least", type=int, default=3, help="points that a line must have [%(default)s]")
    parser.add_argument("--self-test", action="store_true",
                        help="draw rows made up for it, and check the pictures; those of docs/pictures are to be what the rows give")
    options = parser.parse_args(arguments)
    if options.self_test:
        return self_test()
    peaks = {}
    for peak in options.peak:
        if not re.fullmatch(r"[fc](32|64)=\d+(\.\d+)?", peak):
            parser.error(f"--peak: '{peak}' is not scalar=Gflop/s, such as f64=67000")
        peaks[peak[:3]] = float(peak[4:])
    files = options.files or sorted((ROOT / "bench" / "results").glob("*.jsonl"))
    options.output.mkdir(parents=True, exist_ok=True)
    for file in list(files):
        if (watts := read_power(file)) is not None:
            files.remove(file)
            target = options.output / (pathlib.Path(file).stem + ".svg")
            target.write_text(charts.line_chart(pathlib.Path(file).stem, watts, "seconds", "W", steps=True))
            print(target)
    for picture, lines in pictures(read_rows(files)).items():
        lines = {name: line for name, line in lines.items() if len(line) >= options.least}
        if picture.op not in options.op.split(",") or not lines:
            continue
        target = options.output / file_name(picture)
        target.write_text(draw(picture, lines, peaks.get(picture.scalar)))
        print(target)
    return 0


def self_test():
    row = {"op": "cholesky", "scalar": "f64", "machine": "A & B, 2 threads", "mode": "auto", "tuning": None,
           "uplo": "lower", "seconds": 1.0, "peer": "lapack", "peer_seconds": 2.0}
    rows = [{**row, "n": n, "gflops": n / 10} for n in (100, 200, 400)]
    rows += [{**row, "n": 200, "gflops": 30.0}, {**row, "n": 200, "gflops": 1e9, "uplo": "upper"}]
    rows += [{**row, "op": "update", "n": 512, "nb": nb, "looking": looking, "gflops": 1.5 * nb, "peer": None}
             for nb in (32, 64, 128) for looking in ("left", "right")]
    batch = {**row, "op": "batch", "kind": "strided", "method": None, "count": 1000, "ratio": 2.0}
    rows += [{**batch, "n": n, "gflops": n, "part_of_copy": 0.5, "peer": "cusolver"} for n in (4, 8, 16)]
    rows += [{**batch, "n": 5, "gflops": 9, "peer": None, "peer_seconds": None}]
    rows += [{**batch, "n": n, "gflops": n, "preset": "ib", "tuning": f"whole=0 ib={ib}"} for n in (4, 8, 16) for ib in (1, 2)]
    rows += [{**batch, "n": n, "gflops": n, "kind": "ragged", "sizes": sizes, "fixed_ratio": 0.5, "peer_seconds": None}
             for n in (4, 8, 16) for sizes in ("uniform", "one-large")]
    found = pictures(rows)
    machine = "A & B, 2 threads"
    cholesky = found["cholesky", "", "f64", machine, "Gflop/s"]
    ok = found["batch", "", "f64", machine, OF_COPY] == {
        "trifactor, 1,000 items": dict.fromkeys((4, 8, 16), 50), "cusolver, 1,000 items": dict.fromkeys((4, 8, 16), 25)}
    ok = ok and found["batch", "ib", "f64", machine, "Gflop/s"] == {f"ib={ib}": {4: 4, 8: 8, 16: 16} for ib in (1, 2)}
    ok = ok and found["batch", "ragged", "f64", machine, "Gflop/s"]["sum of fixed sizes"] == {4: 8, 8: 16, 16: 32}
    ok = ok and cholesky == {"trifactor": {100: 10, 200: 30, 400: 40}, "lapack": {100: 5, 200: 10, 400: 20}}
    ok = ok and all(value <= charts.round_up(value)[0] <= 2 * value for value in (0.3, 1, 7, 19, 20.1, 999, 43000))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rows.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
        main([str(file), "--output", folder, "--peak", "f64=200"])
        drawn = sorted(p.name for p in pathlib.Path(folder).glob("*.svg"))
        ok = ok and drawn == ["batch-copy-f64-a-b.svg", "batch-f64-a-b.svg", "batch-ib-f64-a-b.svg", "batch-ragged-f64-a-b.svg",
                              "cholesky-f64-a-b.svg", "update-f64-512-a-b.svg"]
        for suffix, text in (
                (".csv", 'what,begin_s,end_s,watts\n"measured x",0,1,\n"a, b",0,0.5,10\n"a, b",0.5,1,30\nc,0,1,5\n'),
                (".jsonl", '{"sensor": "a", "begin": 0, "end": 1, "watts": 2}\n'
                           '{"measured": "x", "begin": 0, "end": 1}\n')):
            (pathlib.Path(folder) / ("power" + suffix)).write_text(text)
        ok = ok and sorted(read_power(pathlib.Path(folder) / "power.csv")) == ["a, b", "c"]
        ok = ok and read_power(pathlib.Path(folder) / "power.jsonl") == {"a": {1e-6: 2, 1: 2}}
        ok = ok and read_power(file) is None
        main([str(pathlib.Path(folder) / "power.csv"), "--output", folder])
        ok = ok and (pathlib.Path(folder) / "power.svg").exists()
        for name in drawn:
            tree = xml.etree.ElementTree.parse(pathlib.Path(folder) / name)
            ok = ok and len(tree.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    with tempfile.TemporaryDirectory() as folder:
        main(["--output", folder])
        for drawn in sorted(pathlib.Path(folder).glob("*.svg")):
            kept = ROOT / "docs" / "pictures" / drawn.name
            if kept.exists() and kept.read_text() != drawn.read_text():
                ok = False
                print(f"{kept}: is not what the rows of bench/results give now")
    print("self-test passed" if ok else "self-test failed")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
