"""Charts as SVG, with nothing but Python: lines, bars and timelines. Used by plot_results.py and bench/papers."""
import math

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 72, 190, 44, 56          # margins; the names of the lines stand to the right
COLOURS = ["#1b6ca8", "#c2452d", "#2d8a4e", "#8a5aa8", "#b8860b", "#3f8f96", "#d16ba5", "#5c5c5c"]
FAINT = ["#e4e4e4", "#cfd8dc", "#e6dccf"]
PEERS = {"cusolver": "#76797c", "cublas": "#76797c", "cudss": "#76797c", "lapack": "#a9845c", "cholmod": "#a9845c",
         "host": "#a9845c"}                         # the same grey and brown in every picture


def round_up(value):
    """A number with one or two digits that is at least `value`, and a step that divides it into four to six."""
    power = 10.0 ** len(str(int(value))) / 10
    while power > value > 0:
        power /= 10
    nice = [(1, 5), (1.2, 6), (1.5, 5), (2, 4), (2.5, 5), (3, 6), (4, 4), (5, 5), (6, 6), (8, 4), (10, 5)]
    for factor, steps in nice:
        if factor * power >= value:
            return factor * power, factor * power / steps
    return 20 * power, 4 * power


def number(value):
    return f"{value:g}"


def number_on_axis(value):
    return number(value) if value < 100000 else str(value)


class Svg:
    def __init__(self, title, height=HEIGHT):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
                      f'font-family="sans-serif" font-size="12">',
                      f"<title>{escaped(title)}</title>", f'<rect width="{WIDTH}" height="{height:g}" fill="white"/>']

    def line(self, x1, y1, x2, y2, colour, extra=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{extra}/>')

    def text(self, x, y, text, anchor="start", extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escaped(text)}</text>')

    def curve(self, points, colour, dashed, marks=True):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if marks:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]

    def box(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def done(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def apart(places, distance):
    """Heights for labels near the wanted ones, from the top down, none closer to the next than `distance`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    heights, last = [0.0] * len(places), -1e9
    for i in order:
        last = heights[i] = max(places[i], last + distance)
    overflow = last - (HEIGHT - BOTTOM)
    if overflow > 0:
        heights = [h - overflow for h in heights]
    return heights


class Colours:
    """Peers have their own colours, others the next one."""

    def __init__(self):
        self.taken = 0

    def of(self, name):
        peer = name.split(",")[0]
        if peer in PEERS:
            return PEERS[peer]
        self.taken += 1
        return COLOURS[(self.taken - 1) % len(COLOURS)]


def grid(svg, top, step, scale=1.0):
    """Horizontal lines with their numbers; returns how high a value lies."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    place = lambda y: bottom - (bottom - TOP) * y / top
    for i in range(int(top / step + 1e-9) + 1):
        svg.line(LEFT, place(i * step), right, place(i * step), "#333" if i == 0 else "#ddd")
        svg.text(LEFT - 8, place(i * step) + 4, number(round(i * step * scale, 10)), "end")
    return place


def bounds_of(svg, place, bounds, scale, at_left=True):
    """Dotted lines with a name and its number: what the others are measured by. The name stands on the left, where
    curves are low, or on the right."""
    for name, value in bounds.items():
        svg.line(LEFT, place(value), WIDTH - RIGHT, place(value), "#555", ' stroke-dasharray="2 3"')
        svg.text(LEFT + 36 if at_left else WIDTH - RIGHT - 4, place(value) - 4, f"{name} {value * scale:.3g}",
                 "start" if at_left else "end", ' fill="#555"')


def ticks_on_axis(svg, xs, place_x, bottom):
    """A mark for each x, and its number where that touches no other: the last one, the first, then the others."""
    named = []
    for x in [xs[-1], *xs]:
        if all(abs(place_x(x) - place_x(other)) > 44 for other in named):
            named.append(x)
            svg.text(place_x(x), bottom + 18, number_on_axis(x), "middle")
    for x in xs:
        svg.line(place_x(x), bottom, place_x(x), bottom + 4, "#333")


def in_tera(unit, top):
    """Tflop/s where Gflop/s would have many digits."""
    return ("Tflop/s", 1e-3) if unit == "Gflop/s" and top >= 2000 else (unit, 1)


def line_chart(title, lines, across="n", unit="Gflop/s", bounds=None, top=None, steps=False, linear=False):
    """lines: {name: {x: y}}; bounds: {name: y}; top: the upper edge. steps: no marks, for samples over time. linear: x
    is no size, so that doublings mean nothing. None without lines."""
    if not lines:
        return None
    svg = Svg(title)
    bounds = bounds or {}
    xs = sorted({x for line in lines.values() for x in line})
    highest = max([max(line.values()) for line in lines.values()] + list(bounds.values()))
    rounded, step = round_up(top or highest)
    top = top or rounded
    unit, scale = in_tera(unit, top)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    place_y = grid(svg, top, step, scale)
    wide = not steps and not linear and xs[0] > 0 and xs[-1] >= 4 * xs[0]   # then every doubling takes the same space
    begin = 0 if steps else xs[0]
    place = (lambda x: math.log2(x / begin)) if wide else (lambda x: x - begin)
    span = place(xs[-1]) or 1
    place_x = lambda x: LEFT + (right - LEFT) * place(x) / span
    whole = [round_up(xs[-1])[1] * i for i in range(12) if round_up(xs[-1])[1] * i <= xs[-1]]
    ticks_on_axis(svg, whole if steps else xs, place_x, bottom)
    svg.text((LEFT + right) / 2, HEIGHT - 14, across + (" (log scale)" if wide else ""), "middle")
    svg.text(8, TOP - 10, unit) if len(unit) > 9 else svg.text(LEFT, TOP - 10, unit, "middle")
    svg.text((LEFT + right) / 2, 20, title, "middle", ' font-size="14"')
    bounds_of(svg, place_y, bounds, scale)
    colours, drawn = Colours(), []
    for name, line in lines.items():
        colour = colours.of(name)
        points = [(place_x(x), place_y(y)) for x, y in sorted(line.items())]
        svg.curve(points, colour, name.split(",")[0] in PEERS, marks=not steps)
        drawn.append((name, points[-1], colour))
    for (name, end, colour), height in zip(drawn, apart([d[1][1] for d in drawn], 15)):
        dots = ' stroke-dasharray="1 5"' if end[0] < right - 1 else ""   # not as if the curve went on
        svg.line(end[0] + 4, end[1], right + 12, height, colour, f' stroke-width="0.5"{dots}')
        svg.text(right + 16, height + 4, name, "start", f' fill="{colour}"')
    return svg.done()


def bar_chart(title, bars, unit, bounds=None):
    """bars: {category: {name: y}}; the names have a colour each. None without bars."""
    if not bars:
        return None
    svg = Svg(title)
    bounds = bounds or {}
    top, step = round_up(max([y for bar in bars.values() for y in bar.values()] + list(bounds.values())))
    unit, scale = in_tera(unit, top)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    place_y = grid(svg, top, step, scale)
    names = list(dict.fromkeys(name for bar in bars.values() for name in bar))
    colours = Colours()
    colour = {name: colours.of(name) for name in names}
    width = (right - LEFT) / len(bars)
    for i, (category, bar) in enumerate(bars.items()):
        each = width * 0.8 / max(1, len(names))
        for k, name in enumerate(names):
            if name in bar:
                x = LEFT + i * width + width * 0.1 + k * each
                svg.box(x, place_y(bar[name]), each * 0.92, bottom - place_y(bar[name]), colour[name])
        svg.text(LEFT + (i + 0.5) * width, bottom + 16 + 12 * (i % 2 if len(bars) > 5 else 0), category, "middle",
                 ' font-size="11"')
    svg.text(8, TOP - 10, unit)
    svg.text((LEFT + right) / 2, 20, title, "middle", ' font-size="14"')
    bounds_of(svg, place_y, bounds, scale, at_left=False)
    legend(svg, colour if names != [unit] else {})
    return svg.done()


def legend(svg, colour, most=20):
    for k, name in enumerate(list(colour)[:most]):
        svg.box(WIDTH - RIGHT + 14, TOP + 18 * k, 10, 10, colour[name])
        svg.text(WIDTH - RIGHT + 30, TOP + 9 + 18 * k, name)


def timeline_chart(title, pieces, unit="ms", idle=()):
    """pieces: [(lane, name, begin, end)] in that unit; lanes lie below each other. idle: names that are drawn faintly."""
    lanes = list(dict.fromkeys(lane for lane, *_ in pieces))
    colours = Colours()
    faint = dict(zip(dict.fromkeys(idle), FAINT))
    colour = {name: faint.get(name) or colours.of(name) for name in dict.fromkeys(name for _, name, *_ in pieces)}
    first, last = min(p[2] for p in pieces), max(p[3] for p in pieces)
    right = WIDTH - RIGHT
    height = min(60.0, (HEIGHT - BOTTOM - TOP) / len(lanes))
    bottom = TOP + height * len(lanes)
    svg = Svg(title, max(bottom + BOTTOM, TOP + 18 * min(20, len(colour)) + 8))
    place_x = lambda t: LEFT + (right - LEFT) * (t - first) / ((last - first) or 1)
    for i, lane in enumerate(lanes):
        svg.line(LEFT, TOP + (i + 1) * height, right, TOP + (i + 1) * height, "#ddd")
        svg.text(LEFT - 6, TOP + (i + 0.6) * height, lane, "end", ' font-size="10"')
    for lane, name, begin, end in pieces:
        y = TOP + lanes.index(lane) * height
        svg.box(place_x(begin), y + 3, max(0.4, place_x(end) - place_x(begin)), height - 6, colour[name])
    _, step = round_up(last - first)
    for i in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1):
        svg.line(place_x(i * step), bottom, place_x(i * step), bottom + 4, "#333")
        svg.text(place_x(i * step), bottom + 18, number(round(i * step, 6)), "middle")
    svg.text((LEFT + right) / 2, bottom + 38, unit, "middle")
    svg.text((LEFT + right) / 2, 20, title, "middle", ' font-size="14"')
    legend(svg, colour)
    return svg.done()
