#===- bench/analysis/report.py - A page of result files --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""bench/report FILE.json... --html OUT --markdown OUT: what the runs say, as a
self-contained page and as tables for the documentation. The same files give
the same bytes."""

import argparse
import json
import os
import pathlib
import sys

from .ceilings import ceilings_of
from .output import check_apart, show, write
from .results import ResultError, load
from .summary import Run, group_text, markdown
from .units import bytes_text, count, digits, percent, ratio_text, time_text

TEMPLATES = pathlib.Path(__file__).with_name("templates")
PACKAGES = "python3-matplotlib python3-jinja2"


def executions(rows):
    """Rows that one kernel computed, together: their shape, the groups, and
    the first of them."""
    found = {}
    for row in rows:
        if row.kernels:
            kernels = tuple((kernel.plan, *kernel.lines)
                            for kernel in row.kernels)
            found.setdefault((row.shape, kernels), []).append(row)
    return [{"shape": shape, "row": same[0],
             "groups": "; ".join(dict.fromkeys(group_text(row.group)
                                               for row in same))}
            for (shape, _), same in found.items()]


class Page:
    """One run with its figures."""

    def __init__(self, run, suffix=""):
        """`suffix` makes titles of figures differ between runs: the ids within
        a figure are made from its title."""
        from markupsafe import Markup

        from . import plots

        def figure(draw, *arguments):
            svg = draw(*arguments[:-1], arguments[-1] + suffix)
            return Markup(svg) if svg else None

        self.run = run
        environment = run.environment
        revision = run.run.get("revision") or "unknown"
        self.facts = [fact for fact in (
            environment.get("cpu"), count(environment["cores"], "core"),
            environment.get("isa"), f"revision {revision}",
            run.run.get("started")) if fact]
        self.alerts = []
        if run.run.get("dirty"):
            self.alerts.append("The sources had changes that are not committed,"
                               f" so revision {revision} does not tell what was"
                               " measured.")
        bad = sum(group.bad_arms for group in run.groups)
        if bad or run.failed:
            self.alerts.append(f"{count(bad, 'arm')} wrong or failed, "
                               f"{count(len(run.failed), 'row')} failed; they "
                               "are listed below and in no mean.")
        self.compared = any(group.compared for group in run.groups)
        self.absent = [peer for peer in run.peers if peer.status != "ok"]
        self.troubles = [trouble for trouble in run.troubles
                         if trouble.status != "unsupported"]
        self.unsupported = [trouble for trouble in run.troubles
                            if trouble.status == "unsupported"]
        self.unsupported_arms = sum(len(trouble.rows)
                                    for trouble in self.unsupported)
        self.operators = []
        several = len(run.groups) > 1
        for name, rows in run.operators.items():
            if all(row.result == "not implemented" for row in rows):
                continue
            title = f"{run.title}: {name}"
            charts = []
            for row in rows:
                svg = figure(plots.samples, row, f"samples of {row.id}")
                if svg:
                    caption = f"{row.shape} · {group_text(row.group)}" \
                        if several else row.shape
                    charts.append({"title": caption, "svg": svg})
            self.operators.append({
                "name": name, "rows": rows, "samples": charts,
                "cold": [row for row in rows if row.cold],
                "executed": executions(rows),
                "peers": figure(plots.over_peers, rows,
                                f"{title}, time over the peers'"),
                "floor": figure(plots.over_floor, rows,
                                f"{title}, time over the floor")})
        self.rooflines = []
        for group in run.groups:
            svg = figure(plots.roofline, run, group,
                         f"{run.title}: roofline, {group.title}")
            if svg:
                self.rooflines.append({"title": group.title, "svg": svg})
        self.details = [(name, value) for name, value in self.describe()
                        if value not in (None, "")]
        self.ceilings = [self.ceiling(item)
                         for item in ceilings_of(run.result)]
        self.raw = json.dumps({"run": {name: value
                                       for name, value in run.run.items()
                                       if name != "rowIds"},
                               "environment": environment,
                               "peers": run.result["peers"]},
                              indent=2, sort_keys=True, ensure_ascii=False)

    def describe(self):
        run, environment = self.run.run, self.run.environment
        yield "command", run.get("command")
        yield "suite", run["suite"]
        yield "revision", (run.get("revision") or "unknown") + (
            ", with changes" if run.get("dirty") else "")
        yield "version", run.get("version")
        yield "started", run.get("started")
        yield "finished", run.get("finished")
        yield "rounds", (f"{run['rounds']} or more, balanced in order, "
                         f"{count(run['samplesPerTurn'], 'sample')} a turn")
        yield "seed", run["seed"]
        yield "machine", environment["machine"]
        yield "processor", environment.get("cpu")
        yield "cores", environment["cores"]
        yield "instruction set", environment.get("isa")
        yield "governor", environment.get("governor")
        if environment.get("frequencyMHz"):
            yield "clock", f"{environment['frequencyMHz']} MHz"
        if environment.get("memoryBytes"):
            yield "memory", bytes_text(environment["memoryBytes"])
        yield "system", environment.get("system")
        yield "caches", ", ".join(
            f"L{cache.get('level', '?')} {cache.get('kind', '')} "
            f"{bytes_text(cache['bytes'])}"
            for cache in environment.get("caches") or []
            if isinstance(cache.get("bytes"), int))
        if environment.get("affinity"):
            yield "pinned to", ", ".join(
                str(core) for core in environment["affinity"])

    @staticmethod
    def ceiling(ceiling):
        rate = "–"
        if ceiling.moved:
            rate = f"{digits(ceiling.bytes_per_second / 1e9)} GB/s"
        elif ceiling.flops:
            rate = f"{digits(ceiling.flops_per_second / 1e9)} GFLOP/s"
        return {"name": ceiling.name, "threads": ceiling.threads,
                "size": bytes_text(ceiling.bytes) if ceiling.bytes else "–",
                "rate": rate, "time": time_text(ceiling.call)}


def html(runs):
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.globals.update(
        ratio_text=ratio_text, percent=percent, count=count, len=len,
        group_text=group_text)
    css = Markup((TEMPLATES / "report.css").read_text("utf-8"))
    return environment.get_template("report.html.j2").render(
        title=", ".join(run.title for run in runs), css=css,
        pages=[Page(run, f" ({number})" if len(runs) > 1 else "")
               for number, run in enumerate(runs, 1)])


def drawing_problem():
    """What is missing to draw a page, or None."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        return (f"found no Python module {error.name}, expected it for "
                f"--html; install the packages {PACKAGES}, or use --markdown")
    return None


def use_system_python():
    """The Debian packages belong to the system's own interpreter: starts over
    with it when another one is first in PATH."""
    system = "/usr/bin/python3"
    if os.path.realpath(sys.executable) == os.path.realpath(system) or \
            not os.access(system, os.X_OK) or \
            os.environ.get("TESSERA_REPORT_PYTHON"):
        return
    os.environ["TESSERA_REPORT_PYTHON"] = system
    os.execv(system, [system] + sys.argv)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/report", description="Makes a page or tables of result "
        "files. Without --html and --markdown the tables go to standard "
        "output.",
        epilog="exit status: 0, 2 when a file is no result or cannot be "
        f"written. --html needs the packages {PACKAGES}.")
    parser.add_argument("files", nargs="+", metavar="FILE.json")
    parser.add_argument("--html", "-o", metavar="OUT", type=pathlib.Path)
    parser.add_argument("--markdown", metavar="OUT", type=pathlib.Path,
                        help="OUT may be - for standard output")
    options = parser.parse_args(arguments)
    try:
        check_apart(filter(None, (options.html, options.markdown)),
                    options.files)
        runs = [Run(load(path)) for path in options.files]
        if options.html:
            problem = drawing_problem()
            if problem and arguments is None:
                use_system_python()
            if problem:
                raise ResultError(problem)
        if options.markdown:
            write(options.markdown, markdown(runs))
        if options.html:
            write(options.html, html(runs))
        if not options.html and not options.markdown:
            show(markdown(runs))
    except ResultError as error:
        print(f"bench/report: {error}", file=sys.stderr)
        return 2
    return 0
