"""What the drivers that measure other programs share: turns, medians, JSON lines.

A line is that of rvp_cell_print (perf/kit.h):
{"bench","row","contender","what","unit","x","value","q1","q3","n"}, the median and the quartiles over the rounds.
"""

import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


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


class Driver:
    """A script that runs programs in turn: what is missing is said on standard error, and remembered."""

    def __init__(self, name, usage):
        self.name, self.usage, self.missing = name, usage, False

    def say(self, text):
        print("%s: %s" % (self.name, text), file=sys.stderr)

    def options(self, words, known, defaults, quick):
        """--quick, --rounds N and --seconds S, where defaults has it, and names out of known, as a dictionary."""
        chosen = dict(defaults, names=[])
        words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
        while words:
            word = words.pop(0)
            key = word[2:] if word.startswith("--") else None
            if word == "--quick":
                chosen.update(quick)
            elif key in defaults and words:
                chosen[key] = type(defaults[key])(words.pop(0))
            elif word in known:
                chosen["names"].append(word)
            else:
                print(self.usage.strip(), file=sys.stderr)
                sys.exit(2)
        return chosen

    def program(self, name):
        """build/perf/NAME, built."""
        build = os.environ.get("BUILD", "build")
        subprocess.run(["make", "-C", build, "--no-print-directory", "perf/" + name], stdout=sys.stderr, check=True)
        return os.path.join(build, "perf", name)

    def peer(self, name):
        """The program of a peer (tests/interop/README.md), or None."""
        done = subprocess.run([os.path.join(HERE, "../tests/interop/build"), name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
        self.say("no %s: %s" % (name, (done.stderr.strip().splitlines() or ["?"])[-1]))
        return None

    def turn(self, command, figures, what):
        """figures(the lines of JSON that a command prints), or None."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                return figures([json.loads(line) for line in done.stdout.splitlines()])
            why = (done.stderr.strip().splitlines() or ["exit %d" % done.returncode])[-1]
        except (subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as e:
            why = str(e)
        self.say("no figure of %s: %s" % (what, why))
        self.missing = True
        return None


def column(results, what):
    """One figure of what turns returned, None where there is none."""
    return [r.get(what) if r is not None else None for r in results]
