"""Timelines that `trifactor trace` wrote, and watts over time."""
import json
import pathlib

import charts

SHOWN = 0.12             # the part of a timeline, from its middle on, in which single operations can be seen


def pieces_of(file):
    """[(lane, operation, begin, end)] in milliseconds."""
    events = json.loads(pathlib.Path(file).read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return [(lanes[e["tid"]], e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3) for e in events if e["ph"] == "X"]


def timeline(run):
    def draw(results):
        pieces = pieces_of(results.files[run])
        first, last = min(p[2] for p in pieces), max(p[3] for p in pieces)
        begin = (first + last) / 2
        end = begin + (last - first) * SHOWN
        shown = [p for p in pieces if p[3] > begin and p[2] < end] if len(pieces) > 200 else pieces
        row = results.rows(run)[0]
        return charts.timeline_chart(f"{row['op']}, n = {row['n']}, {results.machine}", shown)
    return draw


def block_timelines(runs, title):
    """The blocks of a kernel in several ways, below each other from a common beginning, in microseconds. runs: {way: run}."""
    def draw(results):
        pieces = [(lane.replace("block", way), name, 1e3 * begin, 1e3 * end) for way, one in runs.items()
                  for lane, name, begin, end in pieces_of(results.files[one])]
        idle = [name for _, name, *_ in pieces if name.startswith("wait")]
        return charts.timeline_chart(f"{title}, {results.machine}", pieces, "\u00b5s", idle)
    return draw


def beside(run):
    """How much of the lanes but the first was done while another worked, of the summary that trace prints."""
    def part(results):
        lanes = [lane for row in results.rows(run) for lane in row["lanes"] if "overlap_seconds" in lane]
        busy = sum(lane["busy_seconds"] for lane in lanes)
        return f"{100 * sum(lane['overlap_seconds'] for lane in lanes) / busy:.0f} %" if busy > 0 else None
    return part


def watts(file):
    """({sensor: {seconds: watts}}, sensors' averages) while rows were measured, from 0 on."""
    lines = [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]
    spans = [(line["begin"], line["end"]) for line in lines if "measured" in line]
    begin, end = min((s[0] for s in spans), default=0), max((s[1] for s in spans), default=0)
    shown, joules, seconds = {}, {}, {}
    for line in lines:
        if "watts" not in line or line["begin"] < begin or line["end"] > end:
            continue
        points = shown.setdefault(line["sensor"], {})
        points[line["begin"] - begin + 1e-6] = points[line["end"] - begin] = line["watts"]
        joules[line["sensor"]] = joules.get(line["sensor"], 0) + line["watts"] * (line["end"] - line["begin"])
        seconds[line["sensor"]] = seconds.get(line["sensor"], 0) + line["end"] - line["begin"]
    return shown, {sensor: joules[sensor] / seconds[sensor] for sensor in joules}
