#===- bench/analysis/execution.py - How Tessera executed a row -------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The execution reports in a result, as lines for a page. A report may lack any
of its fields."""

from .units import bytes_text, count, digits, percent, time_text

COLD = (("trace", "trace"), ("lookup", "lookup on disk"), ("plan", "plan"),
        ("compile", "compile"), ("load", "load"), ("firstCall", "first call"))


def at(value, *names):
    """What stands under these names, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def listed(value, *names):
    found = at(value, *names)
    return found if isinstance(found, list) else []


def unique(texts):
    return list(dict.fromkeys(text for text in texts if text))


def accesses(report, field, kinds):
    """"15 vector, 6 scalar" of vectorized_loads or vectorized_stores."""
    numbers = [(at(report, field, kind), kind) for kind in kinds]
    return ", ".join(f"{number} {kind}" for number, kind in numbers if number)


def lines_of(report):
    """(name, text) of one kernel's report, without its plan."""
    stages = [stage for stage in listed(report, "plan", "stages")
              if isinstance(stage, dict)]
    nests = [nest for stage in stages for nest in listed(stage, "nests")
             if isinstance(nest, dict)]
    yield "symbols", ", ".join(unique(
        [at(stage, "symbol") for stage in stages] +
        listed(report, "machine", "symbols")))
    machine = [at(report, "machine", "isa")]
    for field, unit in (("vector_bits", "-bit vectors"),
                        ("vector_registers", " registers"),
                        ("spills", " spills")):
        number = at(report, "machine", field)
        if number is not None:
            machine.append(f"{number}{unit}")
    if at(report, "machine", "object_bytes"):
        machine.append("object of "
                       f"{bytes_text(at(report, 'machine', 'object_bytes'))}")
    yield "machine code", ", ".join(text for text in machine if text)
    yield "programs", ", ".join(
        count(at(stage, "programs"), "program")
        + (f" with {bytes_text(at(stage, 'scratch_bytes'))} of scratch"
           if at(stage, "scratch_bytes") else "")
        for stage in stages if isinstance(at(stage, "programs"), int))
    masked = at(report, "masked_accesses") or {}
    for name in ("loads", "stores"):
        text = accesses(report, f"vectorized_{name}",
                        ("vector", "scalar", "gathers", "scatters"))
        if text and at(masked, name):
            text += f"; {at(masked, name)} masked"
        yield name, text
    yield "why", "; ".join(unique(
        at(reason, "text")
        for part in [at(report, "plan"), *nests]
        for reason in listed(part, "reasons")))
    yield "not taken", "; ".join(unique(
        at(other, "text") or at(other, "reason") or at(other, "code")
        for part in [at(report, "plan"), *nests]
        for other in listed(part, "rejected_alternatives")
        if isinstance(other, dict)))
    functions = [f"{at(item, 'name')} ({digits(item['ulps'])} ulp)"
                 if isinstance(at(item, "ulps"), (int, float))
                 else at(item, "name")
                 for item in listed(report, "numerics", "functions")]
    yield "functions", ", ".join(unique(functions))
    predicted = at(report, "work", "predicted_seconds")
    if isinstance(predicted, (int, float)) and predicted > 0:
        terms = [f"{at(term, 'term')} {time_text(at(term, 'seconds') * 1e9)}"
                 for term in listed(report, "work", "predicted_terms")
                 if isinstance(at(term, "seconds"), (int, float))]
        yield "predicted time", time_text(predicted * 1e9) + (
            f" ({', '.join(terms)})" if len(terms) > 1 else "")
    yield "notes", "; ".join(unique(
        note for note in listed(report, "notes") if isinstance(note, str)))


class Kernel:
    """A kernel of a row: its name, its plan in one line, and more lines."""

    def __init__(self, plan, report):
        self.name = at(report, "kernel") or ""
        self.plan = plan or at(report, "plan", "summary") or ""
        self.lines = [(name, text) for name, text in lines_of(report) if text]


def kernels_of(arm):
    """The kernels of Tessera's arm in the order of their launches."""
    reports = listed(arm, "report")
    plans = listed(arm, "detail", "plans")
    return [Kernel(plans[number] if number < len(plans) else None,
                   reports[number] if number < len(reports) else None)
            for number in range(max(len(reports), len(plans)))]


class Cold:
    """A part of a cold call."""

    def __init__(self, name, nanoseconds, whole):
        self.name, self.nanoseconds = name, nanoseconds
        self.share = nanoseconds / whole if whole else 0.0
        self.time, self.percent = time_text(nanoseconds), percent(self.share)


def cold_of(arm):
    """The parts of one cold call, or an empty list."""
    split = at(arm, "cold", "split")
    parts = [(text, at(split, name)) for name, text in COLD]
    parts = [(text, max(value, 0)) for text, value in parts
             if isinstance(value, (int, float))]
    whole = sum(value for _, value in parts)
    return [Cold(text, value, whole) for text, value in parts]
