"""What the drivers that measure other programs share: turns, medians, JSON lines.

A line is that of rvp_cell_print (perf/kit.h):
{"bench","row","contender","what","unit","x","value","q1","q3","n"}, the median and the quartiles over the rounds.
"""

import json
import statistics


def quantile(values, q):
    """The q-quantile (0 to 1) of at least one value, between neighbours in proportion."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    if low + 1 == len(ordered):
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[low + 1] - ordered[low])


def short(value):
    """Four digits are more than any figure of these is worth."""
    return float("%.4g" % value)


def cell(bench, row, contender, what, unit, values, x=0):
    """Prints the line of a figure; no values, no line."""
    if not values:
        return
    line = {"bench": bench, "row": row, "contender": contender, "what": what, "unit": unit, "x": x}
    line["value"] = short(statistics.median(values))
    line["q1"] = short(quantile(values, 0.25))
    line["q3"] = short(quantile(values, 0.75))
    line["n"] = len(values)
    print(json.dumps(line, separators=(",", ":")), flush=True)


def turns(contenders, rounds, run):
    """Calls run(contender) once a round for each, each round beginning with another one.

    Returns {contender: [what run returned, by round]}; None is what a failed turn returns, and stays in its place so
    that ratios compare turns of the same round.
    """
    results = {name: [] for name in contenders}
    for turn in range(rounds):
        for i in range(len(contenders)):
            name = contenders[(i + turn) % len(contenders)]
            results[name].append(run(name))
    return results


def ratios(a, b):
    """a's figures divided by b's of the same round, where both have one."""
    return [x / y for x, y in zip(a, b) if x is not None and y]
