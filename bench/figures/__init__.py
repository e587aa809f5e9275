"""The figures of the papers: what each one runs, how it is drawn, and which of the paper's numbers stand beside ours.

A figure is made of runs, commands of `trifactor` or `trifactor_variants`, that several figures may share. Each run has its
words for three scales: "toy" (a test: seconds for all), "cpu" (a host without a GPU: minutes) and "gpu" (an H200: minutes).
"""
import dataclasses
import pathlib
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import charts  # noqa: E402

SCALES = ("toy", "cpu", "gpu")
VARIANTS = "trifactor_variants"           # the program of bench/variants; its name is part of the words of its runs
QUICK = {"toy": "--device host --seconds 0", "cpu": "--device host --seconds 0.1", "gpu": "--device cuda --seconds 0.1"}
ON_HOST = {"toy": "--device host --seconds 0", "cpu": "--device host --seconds 0.1",
           "gpu": "--device host --seconds 0.1"}


@dataclasses.dataclass(frozen=True)
class Run:
    """A command that prints JSON lines; with another suffix, {file} in its words is what it writes."""
    command: tuple          # (scale, words) pairs; a scale that is not there has no such run
    suffix: str = ".jsonl"
    variants: bool = False  # of trifactor_variants, in place of trifactor

    def words(self, scale):
        return dict(self.command).get(scale)


def run(what, toy=None, cpu=None, gpu=None, suffix=".jsonl"):
    """The same words for all scales, and those of each; None where a scale does not have it."""
    def words(own):
        return None if own is None else " ".join(f"{what} {own}".split())
    return Run(tuple((scale, words(own)) for scale, own in zip(SCALES, (toy, cpu, gpu)) if own is not None), suffix)


def variant(what, suffix=".jsonl"):
    """A run of trifactor_variants --json; its designs are for a GPU alone."""
    return Run((("gpu", f"{VARIANTS} {what} --json --seed 1"),), suffix, variants=True)


def bench(what, toy=None, cpu=None, gpu=None, host=False):
    """A run of trifactor bench --json with few repetitions; host: on the CPU at every scale."""
    device = ON_HOST if host else QUICK
    own = {"toy": toy, "cpu": cpu, "gpu": gpu}
    return run(f"bench {what} --json --seed 1", **{
        scale: None if words is None else f"{words} {device[scale]}" for scale, words in own.items()})


@dataclasses.dataclass
class Claim:
    """What the paper's text says, and ours: computed from the rows of the figure's runs, or None."""
    what: str
    paper: str
    ours: typing.Callable


@dataclasses.dataclass
class Figure:
    name: str                # "gpu-only:9"
    title: str
    runs: list = dataclasses.field(default_factory=list)
    draw: typing.Callable = None      # from Results to SVG, or {"": SVG, "-single": SVG}
    claims: list = dataclasses.field(default_factory=list)
    note: str = ""           # in what ours differs from the paper's figure
    cannot: str = ""         # why there is none, where none of the runs can be made


class Results:
    """What the runs of a figure gave: rows of each, and where their files are."""

    def __init__(self, rows, files, machine):
        self.by_run, self.files, self.machine = rows, files, machine

    def rows(self, *runs):
        return [row for one in runs for row in self.by_run.get(one, [])]


def lines_of(rows, x="n", name=lambda row: row["mode"], y=lambda row: row["gflops"], peers=True):
    """{line: {x: y}}; the peer of a row is a line of its own, its value as many times as it is slower or faster."""
    lines = {}
    for row in rows:
        value = y(row)
        if value is None:
            continue
        place = row[x] if isinstance(x, str) else x(row)
        lines.setdefault(ours_named(name(row)), {})[place] = value
        if peers and row.get("peer") and row.get("peer_seconds"):
            lines.setdefault(row["peer"], {}).setdefault(place, value * row["seconds"] / row["peer_seconds"])
    return lines


def ours_named(name):
    return "trifactor" if name == "auto" else name


def quotients(lines, over, under, least=0):
    """Values of one line over another's, where both have one."""
    a, b = lines.get(over, {}), lines.get(under, {})
    return {x: a[x] / b[x] for x in sorted(set(a) & set(b)) if b[x] > 0 and x >= least}


def digits(value):
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def span(values, unit=""):
    """"1.25 to 3.4", or one number, or None where there is none."""
    values = list(values.values()) if isinstance(values, dict) else list(values)
    if not values:
        return None
    low, high = digits(min(values)), digits(max(values))
    return (low if low == high else f"{low} to {high}") + unit


def last(values, unit=""):
    """That of the largest x."""
    return digits(values[max(values)]) + unit if values else None


def fastest(rows):
    """The bound of a factorization, as the papers have it: the speed of its fastest update."""
    return max((row["gflops"] for row in rows), default=None)


def bound(name, value):
    return {name: value} if value else {}
