#===- bench/analysis/plots.py - Figures of a page --------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Draws with matplotlib and returns SVG text. Colours are names that the page's
style sheet defines, so that a figure follows a light or dark page; texts stay
texts and take the page's font; the same input gives the same bytes."""

import hashlib
import io
import math
import re

import matplotlib
import matplotlib.ticker as ticker
from matplotlib.figure import Figure

from . import statistics
from .ceilings import ceilings_of
from .results import arms_of
from .summary import group_text
from .units import bytes_text, digits, ratio_text, time_text

# Name -> the colour that stands for it until the SVG is written.
COLOURS = {name: f"#0102{index:02x}" for index, name in enumerate(
    ["ink", "muted", "line", "band", "page", "ahead", "level", "behind"] +
    [f"c{number}" for number in range(10)])}
RESULT_COLOUR = {"ahead": "ahead", "level": "level", "behind": "behind",
                 "alone": "level"}
MARKERS = "osD^vP*Xhp<>"
STYLE = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 9,
    "text.color": COLOURS["ink"], "axes.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["line"], "axes.facecolor": "none",
    "xtick.color": COLOURS["line"], "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["muted"], "ytick.labelcolor": COLOURS["ink"],
    "grid.color": COLOURS["line"], "grid.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 9, "axes.titlelocation": "left",
}
ROW = 0.25  # Inches of a row of a chart.


def colour(name):
    return COLOURS[name]


def font_style(match):
    """A font's weight, slant and size without its family."""
    words, size = match.group(1), match.group(2)
    style = f"font-size: {size}px"
    if "bold" in words or "700" in words:
        style += "; font-weight: 600"
    if "italic" in words or "oblique" in words:
        style += "; font-style: italic"
    return style


def path_data(match):
    """The same path without what cannot be seen: vertical strokes in short
    form, and each once."""
    data = " ".join(match.group(1).split())
    # Half a point apart they run into each other.
    strokes = re.sub(
        r"M ([\d.]+) ([\d.]+) L \1 ([\d.]+) ?(?=M|$)",
        lambda m: f"M{round(2 * float(m[1])) / 2:g} {m[2]}V{m[3]}|", data)
    return f'd="{"".join(dict.fromkeys(strokes.split("|")))}"'


def compacted(text):
    """The same drawing in a fraction of the bytes: each style once, as a class
    named after it so that the figures of a page may share it; no line breaks,
    no empty groups."""
    styles = {}

    def class_of(match):
        digest = hashlib.sha256(match.group(1).encode()).hexdigest()
        styles[f"s{digest[:8]}"] = match.group(1)
        return f'class="s{digest[:8]}"'

    text = re.sub(r'style="([^"]*)"', class_of, text)
    rules = "".join(f".{name}{{{style}}}" for name, style in styles.items())
    text = text.replace("</style>", rules + "</style>", 1)
    text = re.sub(r"\s*\n\s*", " ", text).replace(" <", "<").replace(
        "xlink:href", "href")
    text = re.sub(r'\bd="([^"]*)"', path_data, text)
    while True:
        shorter = re.sub(r"<g>((?:(?!</?g[ >]).)*)</g>", r"\1", text)
        if shorter == text:
            return text
        text = shorter


def to_svg(figure, title):
    """The figure as an <svg> element for a page."""
    stream = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        figure.savefig(stream, format="svg", transparent=True,
                       metadata={"Date": None, "Creator": None,
                                 "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    for name, stand_in in COLOURS.items():
        text = text.replace(stand_in, f"var(--{name})")
    text = re.sub(r'font: ([^;"]*?)([\d.]+)px [^;"]*', font_style, text)
    # These are the same in every figure, and nothing refers to them.
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    # Coordinates longer than the eye can tell: tenths of a point.
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(
        r"(\d+\.\d)\d+", r"\1", tag.group(0)), text)
    text = compacted(text)
    width = float(re.search(r'width="([\d.]+)pt"', text).group(1)) * 4 / 3
    label = title.replace("&", "&amp;").replace("<", "&lt;").replace(
        '"', "&quot;")
    return re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
                  f'<svg \\1 role="img" style="max-width:{width:.0f}px">'
                  f"<title>{label}</title>", text, count=1)


class Numbers(ticker.Formatter):
    """0.25, 1, 2.5, 1000: numbers as people write them."""

    def __call__(self, value, position=None):
        return f"{value:g}" if value < 1e5 else f"{value:.0e}"


def log_ticks(low, high, most):
    """At most `most` round numbers on a logarithmic axis, at least two where
    they exist."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    best = []
    for step in (3, 2, 1):
        ticks = [10.0 ** power for power in range(first, last + 1)
                 if power % step == 0]
        best = choose(best, ticks, low, high, most)
    for factors in ((1, 3), (1, 2, 5), (1, 2, 3, 5, 7),
                    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        ticks = [factor * 10.0 ** power for power in range(first - 1, last + 1)
                 for factor in factors]
        best = choose(best, ticks, low, high, most)
    if len(best) < 2:
        ticks = ticker.MaxNLocator(most - 1).tick_values(low, high)
        best = [tick for tick in ticks if low <= tick <= high]
    return best


def choose(best, ticks, low, high, most):
    """The ticks within the limits where they are more, but not too many."""
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(best) < len(inside) <= most else best


def log_axis(axis, low, high, most):
    """A logarithmic axis with a few labelled ticks."""
    axis.set_major_locator(ticker.FixedLocator(log_ticks(low, high, most)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(Numbers())


# --- Charts of an operator -------------------------------------------------


def lay_out(rows):
    """[(row or None, place, label)]: a heading before each group when there
    are several."""
    groups = list(dict.fromkeys(row.group for row in rows))
    places, place = [], 0.0
    for group in groups:
        if len(groups) > 1:
            place += 0.3 if places else 0
            places.append((None, place, group_text(group)))
            place += 1
        for row in rows:
            if row.group == group:
                places.append((row, place, row.shape))
                place += 1
    return places, place


def chart(rows, right_inches, width=5.6):
    """Axes with a line per row, and a column of text on the right."""
    places, size = lay_out(rows)
    longest = max(len(row.shape) for row in rows)
    left = 0.25 + 0.075 * min(max(longest, 6), 30)
    below, above = 0.5, 0.1
    height = size * ROW + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes([left / width, below / height,
                            (width - left - right_inches) / width,
                            size * ROW / height])
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_yticks([place for row, place, _ in places if row])
    axes.set_yticklabels([label for row, _, label in places if row])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xscale("log")
    for row, place, label in places:
        if row is None:
            figure.text(0.01, 1 - (above + (place + 0.5) * ROW) / height, label,
                        color=colour("muted"), va="center", fontsize=8,
                        fontweight="bold", bbox={
                            "facecolor": colour("page"), "pad": 1,
                            "edgecolor": "none"})
    return figure, axes, places


def note(axes, place, text, name="muted"):
    """Text in the column on the right."""
    axes.annotate(text, (1, place), xycoords=("axes fraction", "data"),
                  xytext=(6, 0), textcoords="offset points", va="center",
                  color=colour(name), fontsize=8.5, annotation_clip=False)


def state(axes, row, place):
    """What stands where a row has no figure."""
    text = "no peer" if row.result == "alone" else row.result
    axes.annotate(text, (0, place), xycoords=("axes fraction", "data"),
                  xytext=(4, 0), textcoords="offset points", va="center",
                  color=colour("behind" if row.result == "failed" else
                               "muted"), fontsize=8.5, fontstyle="italic")


def over_peers(rows, title):
    """Time over each peer's; the best peer filled, with its interval. None
    where no row was compared."""
    if not any(row.ratio for row in rows):
        return None
    with matplotlib.rc_context(STYLE):
        figure, axes, places = chart(rows, 1.5)
        values = [1.0]
        for row, place, _ in places:
            if row is None:
                continue
            if not row.ratio:
                state(axes, row, place)
                continue
            ratios = [item["median"] for name, item in
                      row.comparisons.items() if name != row.best]
            low, high = row.interval
            values += ratios + [low, high, row.ratio]
            name = RESULT_COLOUR[row.result]
            if row.noise:
                axes.plot([max(1 - row.noise, 0.05), 1 + row.noise],
                          [place] * 2, color=colour("band"), linewidth=9,
                          solid_capstyle="butt", zorder=1)
            axes.plot(ratios, [place] * len(ratios), "o", markersize=4,
                      markerfacecolor=colour("page"),
                      markeredgecolor=colour("muted"), markeredgewidth=0.9,
                      zorder=3)
            axes.plot([low, high], [place] * 2, color=colour(name),
                      linewidth=1.6, zorder=4)
            axes.plot([row.ratio], [place], "o", markersize=6,
                      color=colour(name), zorder=5)
            note(axes, place, f"{ratio_text(row.ratio)} {row.best}",
                 "behind" if row.result == "behind" else "muted")
        low, high = min(values) / 1.15, max(values) * 1.15
        axes.set_xlim(min(low, 0.7), max(high, 1.4))
        axes.axvline(1, color=colour("ink"), linewidth=0.9, zorder=2)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        log_axis(axes.xaxis, *axes.get_xlim(), 7)
        axes.set_xlabel("time over the peer's (left of 1: Tessera is faster)")
        return to_svg(figure, title)


def over_floor(rows, title):
    """Time over the floor that the machine allows; None without one."""
    if not any(row.over_floor for row in rows):
        return None
    with matplotlib.rc_context(STYLE):
        figure, axes, places = chart(rows, 1.5)
        values = [1.0, 1.5]
        for row, place, _ in places:
            if row is None:
                continue
            if not row.over_floor:
                if row.result in ("failed", "not implemented"):
                    state(axes, row, place)
                continue
            values.append(row.over_floor)
            axes.plot([1, row.over_floor], [place] * 2, color=colour("c0"),
                      linewidth=2, alpha=0.45, zorder=2)
            axes.plot([row.over_floor], [place], "o", markersize=6,
                      color=colour("c0"), zorder=3)
            by = (row.row.get("floor") or {}).get("by")
            note(axes, place, f"{ratio_text(row.over_floor)} "
                 f"{'bytes' if by == 'bandwidth' else by}")
        axes.set_xlim(min(values) / 1.1, max(values) * 1.15)
        axes.axvline(1, color=colour("ink"), linewidth=0.9, zorder=1)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        log_axis(axes.xaxis, *axes.get_xlim(), 7)
        axes.set_xlabel("time over the floor (1: what the machine allows)")
        return to_svg(figure, title)


def samples(row, title):
    """Every sample of every arm of a row, around the arm's own median; what
    lies beyond the axis is counted."""
    arms = [(arm, [value / arm["inner"] for turn in arm["samples"]
                   for value in turn if value > 0])
            for arm in arms_of(row.row)
            if arm.get("samples") and arm.get("inner")]
    arms = [(arm, values) for arm, values in arms if values]
    if not arms:
        return None
    middles = [statistics.median(values) for _, values in arms]
    percents = [[(value / middle - 1) * 100 for value in values]
                for (_, values), middle in zip(arms, middles)]
    # The same axis for all arms: the middle 98 % of those that spread most.
    low = max(min(statistics.quantile(part, 0.01) for part in percents), -50)
    high = min(max(statistics.quantile(part, 0.98) for part in percents), 100)
    low, high = min(low * 1.05, -0.5), max(high * 1.05, 0.5)
    with matplotlib.rc_context(STYLE):
        width, below, right = 4.2, 0.34, 1.35
        size = len(arms) * 0.2
        height = size + below + 0.04
        left = 0.15 + 0.07 * min(max(len(arm["name"]) for arm, _ in arms), 18)
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes([left / width, below / height,
                                (width - left - right) / width, size / height])
        axes.set_xlim(low, high)
        axes.set_ylim(len(arms) - 0.5, -0.5)
        axes.axvline(0, color=colour("muted"), linewidth=0.8)
        for place, (arm, _) in enumerate(arms):
            inside = [value for value in percents[place]
                      if low <= value <= high]
            # Strokes of one path: much smaller than a mark per sample.
            xs = [x for value in inside for x in (value, value, None)]
            ys = [y for _ in inside for y in (place - 0.34, place + 0.34, None)]
            name = "c0" if arm["role"] == "subject" else \
                "level" if arm["role"] == "control" else "c1"
            name = name if arm["status"] == "ok" else "behind"
            axes.plot(xs, ys, color=colour(name), linewidth=0.8, alpha=0.6)
            beyond = len(percents[place]) - len(inside)
            note(axes, place, time_text(middles[place]) +
                 (f", {beyond} beyond" if beyond else ""))
        axes.set_yticks(range(len(arms)))
        axes.set_yticklabels([arm["name"] for arm, _ in arms], fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=8)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(4))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g} %"
                                       if value else "0")
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        return to_svg(figure, title)


# --- Roofline --------------------------------------------------------------


def bandwidths(result, threads):
    """[(bytes of the working set, bytes per second)]: the best mix of a few
    working sets, from the smallest to the largest."""
    best = {}
    for ceiling in ceilings_of(result):
        if ceiling.threads == threads and ceiling.moved > 0:
            rate = ceiling.bytes_per_second
            best[ceiling.bytes] = max(best.get(ceiling.bytes, 0), rate)
    sizes = sorted(best)
    if len(sizes) > 4:
        sizes = [sizes[round(i * (len(sizes) - 1) / 3)] for i in range(4)]
    return [(size, best[size]) for size in sizes]


def roofline(run, group, title):
    """Operations per second over operations per byte, under the ceilings; None
    without ceilings or without a row that has both."""
    rows = [row for row in group.rows
            if row.intensity and row.flops_per_second]
    if not rows:
        return None
    boundary, threads, _ = group.key
    if boundary in ("cold", "disk"):  # Compilation has no such ceiling.
        return None
    lines = bandwidths(run.result, threads)
    peaks = [(ceiling.name, ceiling.flops_per_second)
             for ceiling in ceilings_of(run.result)
             if ceiling.threads == threads and ceiling.flops > 0]
    if not lines and not peaks:
        return None
    with matplotlib.rc_context(STYLE):
        width, height = 10.8, 4.8
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes([0.06, 0.11, 0.78, 0.85])
        axes.set_xscale("log")
        axes.set_yscale("log")
        xs = [row.intensity for row in rows]
        ys = [row.flops_per_second / 1e9 for row in rows]
        low_x, high_x = min(xs) / 2.5, max(max(xs) * 2.5, min(xs) * 30)
        peak = max((rate for _, rate in peaks), default=None)
        for size, rate in lines:
            end = min(high_x, peak / rate) if peak else high_x
            if end <= low_x:
                continue
            axes.plot([low_x, end], [low_x * rate / 1e9, end * rate / 1e9],
                      color=colour("muted"), linewidth=1, zorder=2)
        for name, rate in peaks:
            axes.plot([low_x, high_x], [rate / 1e9] * 2, color=colour("muted"),
                      linewidth=1, zorder=2)
            axes.annotate(f"{name}: {digits(rate / 1e9)} GFLOP/s",
                          (high_x, rate / 1e9), xytext=(-4, 4), ha="right",
                          textcoords="offset points", fontsize=8,
                          color=colour("muted"))
        for number, operator in enumerate(dict.fromkeys(
                row.operator for row in rows)):
            mine = [row for row in rows if row.operator == operator]
            axes.plot([row.intensity for row in mine],
                      [row.flops_per_second / 1e9 for row in mine],
                      MARKERS[number % len(MARKERS)], markersize=6,
                      color=colour(f"c{number % 10}"),
                      markeredgecolor=colour("page"), markeredgewidth=0.7,
                      label=operator, zorder=4)
        tops = ys + ([peak / 1e9] if peak else [])
        bottoms = ys + [low_x * rate / 1e9 for _, rate in lines]
        axes.set_xlim(low_x, high_x)
        axes.set_ylim(min(bottoms) / 1.6, max(tops) * 2)
        # Along its line: as steep as the line is in inches.
        box, (bottom, top) = axes.get_position(), axes.get_ylim()
        steep = math.degrees(math.atan2(
            box.height * height / math.log10(top / bottom),
            box.width * width / math.log10(high_x / low_x)))
        for size, rate in lines:
            axes.annotate(f"{bytes_text(size)}: {digits(rate / 1e9)} GB/s",
                          (low_x, low_x * rate / 1e9), xytext=(5, 8),
                          textcoords="offset points", fontsize=8,
                          color=colour("muted"), rotation=steep,
                          rotation_mode="anchor")
        axes.grid(True)
        axes.set_axisbelow(True)
        log_axis(axes.xaxis, *axes.get_xlim(), 7)
        log_axis(axes.yaxis, *axes.get_ylim(), 8)
        axes.set_xlabel("operations per byte")
        axes.set_ylabel("GFLOP/s")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False,
                    fontsize=8.5, handletextpad=0.2, labelcolor=colour("ink"))
        return to_svg(figure, title)
