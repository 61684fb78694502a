"""Plots of the figures that have an x, by gnuplot: one PNG per program, what and unit, both axes logarithmic."""

import os
import re
import shutil
import subprocess
import tempfile

from results import is_ratio
from tables import grouped

FACTOR = {"": 1, "k": 1e3, "M": 1e6, "K": 1024, "Ki": 1024, "KiB": 1024, "MiB": 1048576, "GiB": 1073741824, "B": 1}
SETTING = """set terminal pngcairo size 900,560 font "sans,10"
set output "%s"
set title "%s" noenhanced
set logscale xy
set grid
set key outside right noenhanced
set ylabel "%s" noenhanced
"""


def without_x(row, x):
    """The row's text with the number that x is left out."""
    def part(match):
        value = float(match.group(1)) * FACTOR.get(match.group(2) or "", 1)
        return "·" if abs(value - x) <= 1e-6 * x else match.group(0)
    left = re.sub(r"(\d+(?:\.\d+)?)(?: ?(KiB|MiB|GiB|Ki|[kKMB])\b)?", part, row)
    return re.sub(r"· (\w+)s\b", r"· \1", left)  # "1 stream" and "8 streams" are one curve


def curves(cells):
    """{name: [(x, cell)]} of the curves with two points at least; the rows' texts name them where contenders do not."""
    points = [c for c in cells if c.x > 0 and c.value is not None and c.value > 0]
    rest = {without_x(c.row, c.x) for c in points}
    found = grouped(points, lambda c: c.contender if len(rest) == 1 else "%s, %s" % (c.contender, without_x(c.row, c.x)))
    found = {name: sorted(group, key=lambda c: c.x) for name, group in found.items()}
    return {name: group for name, group in found.items() if len({c.x for c in group}) > 1}


def script(title, unit, found, png):
    """What gnuplot is told; quartiles are shown as bars."""
    def text(words):
        return words.replace("\\", "/").replace('"', "'")
    lines = [SETTING % (png, text(title), text(unit))]
    lines.append("plot " + ", ".join('"-" using 1:2:3:4 with yerrorlines title "%s"' % text(name) for name in found))
    for group in found.values():
        for c in group:
            low, high = (q if q is not None and q > 0 else c.value for q in (c.q1, c.q3))
            lines.append("%g %g %g %g" % (c.x, c.value, low, high))
        lines.append("e")
    return "\n".join(lines) + "\n"


def draw(cells, folder):
    """{question: [(file, title)]} of the plots that were made in the folder, or None without gnuplot."""
    program = shutil.which("gnuplot")
    if program is None:
        return None
    drawn = {}
    for (question, bench, what, unit, ratio), group in grouped(
            [c for c in cells if c.contender], lambda c: (c.question, c.bench, c.what, c.unit, is_ratio(c))).items():
        found = curves(group)
        if not found:
            continue
        title = "%s: %s%s" % (bench, what, " ratios" if ratio else "")
        name = re.sub(r"[^a-z0-9]+", "-", ("%s %s %s" % (question, title, unit)).lower()).strip("-") + ".png"
        with tempfile.TemporaryDirectory() as tmp:
            png = os.path.join(tmp, "plot.png")
            done = subprocess.run([program], input=script(title, unit, found, png).encode(), stderr=subprocess.DEVNULL,
                                  timeout=60, check=False)
            if done.returncode == 0 and os.path.exists(png):
                shutil.move(png, os.path.join(folder, name))
                drawn.setdefault(question, []).append((name, title))
    return drawn
