"""Tables of a report, in Markdown: figures as rows by contenders, targets beside what was reached."""

from results import converted, find, is_ratio, ranged, short
from targets import TARGETS


def table(head, rows, right=()):
    """A Markdown table; the columns named in right are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("--:" if i in right else "---" for i in range(len(head))) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def grouped(items, key):
    """{key: [items]}, both in their order."""
    groups = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def pivot(cells):
    """Rows by contenders, of figures with one unit, the longer side downwards; of a figure that came twice the last."""
    sides = [list(dict.fromkeys(c.row for c in cells)), list(dict.fromkeys(c.contender for c in cells))]
    by = {(c.row, c.contender): ranged(c) for c in cells}
    if len(sides[1]) > max(8, len(sides[0])):
        sides.reverse()
        by = {(b, a): text for (a, b), text in by.items()}
    rows = [[down or "-"] + [by.get((down, across), "") for across in sides[1]] for down in sides[0]]
    return table([""] + sides[1], rows, range(1, len(sides[1]) + 1))


def plain(cells):
    """The older lines: as they are."""
    return table(["case", "value", "unit"], [[c.row, short(c.value), c.unit] for c in cells], (1,))


def of_question(cells):
    """The tables of a question's figures, one per program, what and unit."""
    parts = []
    for (bench, what, unit, ratio), group in grouped(
            cells, lambda c: (c.bench, c.what, c.unit, is_ratio(c))).items():
        if not any(c.contender for c in group):
            continue
        name = "%s, %s" % (what, unit) if unit not in ("", "ratio") else what
        parts.append("### %s: %s%s\n\n%s" % (bench, name, ", ratios" if ratio else "", pivot(group)))
    for bench, group in grouped([c for c in cells if not c.contender], lambda c: c.bench).items():
        parts.append("### %s\n\n%s" % (bench, plain(group)))
    return parts


def reached(target, cells):
    """What came of a target: (median, lower and upper quartile), of the figure that counts; or None."""
    found = []
    for cell in find(cells, target.question, target.places):
        figures = [converted(v, cell.unit, target.unit) for v in (cell.value, cell.q1, cell.q3)]
        if figures[0] is not None:
            found.append(figures)
    if not found:
        return None
    if target.pick == "spread":
        least = min(f[0] for f in found)
        return (max(f[0] for f in found) / least, None, None) if least > 0 else None
    if target.op == ">=":
        return tuple(min(found))
    if target.op == "<=":
        return tuple(max(found, key=lambda f: f[0]))
    middle = sum(target.value) / 2
    return tuple(max(found, key=lambda f: abs(f[0] - middle)))


def is_met(target, value):
    if target.op == "in":
        return target.value[0] <= value <= target.value[1]
    return value >= target.value if target.op == ">=" else value <= target.value


def with_unit(text, unit):
    return text if unit in ("ratio", "") else text + (unit if unit[0] == "/" else " " + unit)


def wanted(target):
    if target.op == "in":
        return "%s–%s" % tuple(map(short, target.value))
    unit = "ratio" if target.pick == "spread" else target.unit
    return with_unit({">=": "≥ ", "<=": "≤ "}[target.op] + short(target.value), unit)


def verdicts(cells, targets=TARGETS):
    """[(target, figures or None, "met", "missed" or "not measured")]"""
    result = []
    for target in targets:
        figures = reached(target, cells)
        word = "not measured" if figures is None else "met" if is_met(target, figures[0]) else "missed"
        result.append((target, figures, word))
    return result


def count(judged):
    words = [word for _, _, word in judged]
    return "%d met, %d missed, %d not measured" % tuple(words.count(w) for w in ("met", "missed", "not measured"))


def summary(judged):
    """Every target beside what was reached."""
    rows = []
    for target, figures, word in judged:
        unit = "ratio" if target.pick == "spread" else target.unit
        value = quartiles = "-"
        if figures is not None:
            value = with_unit(short(figures[0]), unit)
            if None not in figures:
                quartiles = "%s–%s" % (short(figures[1]), short(figures[2]))
        rows.append([target.question, target.text, wanted(target), value, quartiles, word.replace("missed", "**missed**")])
    return table(["question", "what", "wanted", "reached", "quartiles", ""], rows, (2, 3, 4))
