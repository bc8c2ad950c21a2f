"""Line and bar charts as SVG text. Colours come from the page's style (`--<library key>`)."""

import html
import math

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 58, 44


def escape(text):
    return html.escape(str(text))


def short(value):
    """A tick label: 3 significant digits at most."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def bytes_name(value):
    for limit, suffix in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


class Axis:
    """Maps values to pixels, linear from zero or logarithmic, and chooses ticks."""

    def __init__(self, values, log, low_pixel, high_pixel, from_zero=False):
        self.log, self.low_pixel, self.high_pixel = log, low_pixel, high_pixel
        low, high = min(values), max(values)
        if log:
            low, high = max(low, 1e-9), max(high, 1e-9)
            self.low, self.high = math.log10(low), math.log10(high)
            if from_zero:  # a value axis: whole decades
                self.low, self.high = math.floor(self.low), math.ceil(self.high)
        else:
            self.low, self.high = (0.0 if from_zero else low), high * (1.08 if from_zero else 1)
        if self.high <= self.low:
            self.high = self.low + 1

    def pixel(self, value):
        place = math.log10(max(value, 1e-9)) if self.log else value
        return self.low_pixel + (place - self.low) / (self.high - self.low) * (self.high_pixel - self.low_pixel)

    def ticks(self):
        if self.log:
            return [10.0**e for e in range(math.ceil(self.low), math.floor(self.high) + 1)]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        for factor in (1, 2, 5, 10):
            if (self.high - self.low) / (step * factor) <= 6:
                step *= factor
                break
        first = math.ceil(self.low / step)
        return [i * step for i in range(first, int(self.high / step) + 1)]


def legend(keys, names):
    """The names with their colours, and the height of the lines that they take beyond the first."""
    parts, x, y = [], LEFT, 32
    for key in keys:
        name = names.get(key, key)
        if x > LEFT and x + 20 + 5.5 * len(name) > WIDTH:  # the next line
            x, y = LEFT, y + 13
        parts.append(
            f'<rect x="{x}" y="{y}" width="11" height="11" rx="2" fill="var(--{key})"/>'
            f'<text x="{x + 15}" y="{y + 10}" style="font-size:11px">{escape(name)}</text>'
        )
        x += 26 + 6.2 * len(name)
    return "".join(parts), y - 32


def frame(title, body, height=HEIGHT):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f'<text x="{LEFT}" y="18" style="font-weight:600;font-size:14px">{escape(title)}</text>{body}</svg>'
    )


def lines(title, series, names, x_label, y_label, x_log=False, y_log=False, x_bytes=False):
    """`series`: {key: [(x, y)]}. An empty string when there is nothing to draw."""
    series = {k: sorted(p) for k, p in series.items() if p}
    points = [p for one in series.values() for p in one]
    xs = sorted({x for x, _ in points})
    if len(xs) < 2:
        return ""
    x_axis = Axis(xs, x_log, LEFT + 8, WIDTH - RIGHT - 8)
    keys, more = legend(series, names)
    top, height = TOP + more, HEIGHT + more
    y_axis = Axis([y for _, y in points], y_log, height - BOTTOM, top, from_zero=True)
    body = [keys]
    for tick in y_axis.ticks():
        y = y_axis.pixel(tick)
        body.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>'
        )
    name = bytes_name if x_bytes else short
    for tick in xs:
        body.append(
            f'<text x="{x_axis.pixel(tick):.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{name(tick)}</text>'
        )
    body.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{height - 8}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="14" y="{(top + height - BOTTOM) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {(top + height - BOTTOM) / 2})">{escape(y_label)}</text>'
    )
    for key, one in reversed(list(series.items())):  # ours is drawn last, on top
        way = " ".join(f"{x_axis.pixel(x):.1f},{y_axis.pixel(y):.1f}" for x, y in one)
        width = 3 if key == "heddle" else 1.8
        body.append(f'<polyline points="{way}" fill="none" stroke="var(--{key})" stroke-width="{width}"/>')
        for x, y in one:
            label = f"{names.get(key, key)}: {short(y)} {y_label} at {name(x)} {x_label}"
            body.append(
                f'<circle cx="{x_axis.pixel(x):.1f}" cy="{y_axis.pixel(y):.1f}" r="3.2" fill="var(--{key})">'
                f"<title>{escape(label)}</title></circle>"
            )
    return frame(title, "".join(body), height)


def bars(title, groups, names):
    """`groups`: [(label, {key: value})], drawn as horizontal bars, one block a group."""
    groups = [(label, values) for label, values in groups if values]
    if not groups:
        return ""
    keys = list(dict.fromkeys(k for _, values in groups for k in values))
    bar, gap = 13, 26
    legend_text, more = legend(keys, names)
    height = TOP + more + sum(gap + bar * len(values) for _, values in groups) + 14
    axis = Axis([v for _, values in groups for v in values.values()], False, LEFT, WIDTH - 60, from_zero=True)
    body, y = [legend_text], TOP + more
    for label, values in groups:
        body.append(f'<text x="{LEFT}" y="{y + 16}" style="font-weight:600">{escape(label)}</text>')
        y += gap - 4
        for key, value in values.items():
            body.append(
                f'<rect x="{LEFT}" y="{y}" width="{max(1, axis.pixel(value) - LEFT):.1f}" height="{bar - 3}" '
                f'fill="var(--{key})"><title>{escape(names.get(key, key))}: {value:,.0f}</title></rect>'
                f'<text x="{axis.pixel(value) + 5:.1f}" y="{y + 9}" style="font-size:11px">{value:,.0f}</text>'
            )
            y += bar
        y += 4
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f'<text x="{LEFT}" y="18" style="font-weight:600;font-size:14px">{escape(title)}</text>{"".join(body)}</svg>'
    )
