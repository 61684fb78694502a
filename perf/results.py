"""Reading what perf/run wrote: lines, cells, and how a figure is found among them.

results.jsonl: the first line is the machine ({"bench":"machine",...}), a line {"bench":"run","question":...} tells how a
question's run went, all others are the lines of the programs with "question" added.  A program's line is that of
rvp_cell_print (perf/kit.h), or an older one with "case".
"""

import collections
import json
import math
import os
import re

NAME = "results.jsonl"
# One figure.  contender "" and what "": an older line, whose row is its case.  value, q1, q3: None if it is no number.
Cell = collections.namedtuple("Cell", "question bench row contender what unit x value q1 q3 n")
Results = collections.namedtuple("Results", "machine runs lines broken")
# Where a figure is: regular expressions that row, contender, what and unit contain.
At = collections.namedtuple("At", "row contender what unit", defaults=("", "", ""))

# Every unit that can be told as another: its kind, and how many of that kind's first one it is.
SCALE = {"s": ("time", 1.0), "ms": ("time", 1e-3), "us": ("time", 1e-6), "ns": ("time", 1e-9),
         "B": ("bytes", 1.0), "bytes": ("bytes", 1.0), "KiB": ("bytes", 1024.0), "MiB": ("bytes", 1048576.0),
         "GiB": ("bytes", 1073741824.0), "B/s": ("rate", 1.0), "bytes/s": ("rate", 1.0), "MB/s": ("rate", 1e6),
         "GB/s": ("rate", 1e9), "Mmsg/s": ("items", 1e6), "msg/s": ("items", 1.0), "items/s": ("items", 1.0),
         "Mwrites/s": ("items", 1e6)}


def number(value):
    """A finite number, or None."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None


def parse(text):
    """The object of a line, or None if it is none.  C prints nan and inf, which JSON does not have: they become null."""
    text = re.sub(r':\s*[-+]?(nan|inf(inity)?)\b(\([^)]*\))?', ":null", text, flags=re.IGNORECASE)
    try:
        line = json.loads(text, parse_constant=lambda name: None)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "bench" in line else None


def path_of(where):
    """The file of a folder, or the file itself."""
    return os.path.join(where, NAME) if os.path.isdir(where) else where


def load(where):
    """Everything of a results folder or file.  broken: how many lines could not be understood."""
    found = Results({}, {}, [], [])
    with open(path_of(where), encoding="utf-8", errors="replace") as file:
        for text in filter(None, map(str.strip, file)):
            line = parse(text)
            if line is None:
                found.broken.append(text)
            elif line["bench"] == "machine":
                found.machine.update(line)
            elif line["bench"] == "run":
                found.runs[line.get("question", "")] = line
            else:
                found.lines.append(line)
    return found


def tabular(line):
    """The cells of a line of the drivers that print medians with many fields (perf/peers/notifications, split_send_size)."""
    keys = [k for k in ("work", "transport", "variant", "split", "size") if k in line]
    row = " ".join(str(line[k]) for k in keys)
    x = number(line.get("split", line.get("size"))) or 0
    head = (line.get("question", line["bench"]), line["bench"], row, line.get("case", ""))
    unit = line.get("unit", "")
    middle = number(line["median"])
    n = line.get("rounds", line.get("n", 0))
    if unit.startswith("ratio"):
        what = "cpu" if "processor" in unit else "time"
        return [Cell(*head, what, "ratio", x, middle, number(line.get("lower")), number(line.get("upper")), n)]
    if "us_each" not in line:
        return [Cell(*head, "time", unit, x, middle, None, None, n)]
    each = number(line["us_each"])
    factor = each / middle if each is not None and middle else None

    def part(key):
        value = number(line.get(key))
        return None if factor is None or value is None else value * factor
    cells = [Cell(*head, "time", "us", x, each, part("lower"), part("upper"), n)]
    if number(line.get("cpu_s_per_gb")):
        cells.append(Cell(*head, "cpu", "s/GB", x, number(line["cpu_s_per_gb"]), None, None, n))
    return cells


def cells_of(line):
    """The figures of one line."""
    if "median" in line:
        return tabular(line)
    question = line.get("question", line["bench"])
    n = line.get("n", 0)
    if "row" not in line:
        return [Cell(question, line["bench"], str(line.get("case", "")), "", "", line.get("unit", ""), 0,
                     number(line.get("value")), None, None, n)]
    return [Cell(question, line["bench"], str(line["row"]), str(line.get("contender", "")), str(line.get("what", "")),
                 line.get("unit", ""), number(line.get("x")) or 0, number(line.get("value")), number(line.get("q1")),
                 number(line.get("q3")), n)]


def cells(results):
    """All figures, in their order."""
    return [cell for line in results.lines for cell in cells_of(line)]


def find(every, question, places):
    """The figures at the first of the places that has any."""
    for at in places:
        found = [c for c in every if c.question == question and c.value is not None and re.search(at.row, c.row) and
                 re.search(at.contender, c.contender) and re.search(at.what, c.what) and re.search(at.unit, c.unit)]
        if found:
            return found
    return []


def converted(value, unit, wanted):
    """The value in the wanted unit, or None if it is of another kind."""
    # "ns/message" is a time.
    unit, wanted = ("ratio" if u == "" else u if u in SCALE else u.split("/")[0] for u in (unit, wanted))
    if unit == wanted or value is None:
        return value
    kind, scale = SCALE.get(unit, (None, 1))
    other, into = SCALE.get(wanted, (None, 1))
    return value * scale / into if kind is not None and kind == other else None


def short(value):
    """A figure as people read it: three digits, whole from 100 on."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 99.95:
        return "%.0f" % value
    return "%.3g" % value


def ranged(cell, spread=0.05):
    """The median; with its quartiles where they are further apart than that."""
    text = short(cell.value)
    if None in (cell.value, cell.q1, cell.q3) or abs(cell.q3 - cell.q1) <= spread * abs(cell.value):
        return text
    return "%s (%s–%s)" % (text, short(cell.q1), short(cell.q3))


def is_ratio(cell):
    """Is it one contender's figure divided by another's?"""
    return cell.unit.startswith("ratio") or "/" in cell.contender


def store(path, machine, runs, lines):
    """Writes all of it; whoever reads sees the old file or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        for line in [machine] + list(runs) + list(lines):
            file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    os.replace(path + ".new", path)
