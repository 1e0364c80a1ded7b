#===- bench/analysis/suites.py - The rows a run should have ----------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Suites as bench/core/row.cpp reads them: each group is the product of its
boundaries, types, operators and shapes."""

import json
import pathlib
import re

from .results import (ANY, COUNT, TEXT, Is, ListOf, MapOf, Record,
                      ResultError, whole)

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "suites"

SUITE = Record({"groups": ListOf(Record(
    {"operators": ListOf(TEXT), "dtypes": ListOf(TEXT),
     "shapes": ListOf(MapOf(COUNT)),
     "boundaries": ListOf(Is(
         "a boundary and a number of threads", lambda value:
         isinstance(value, list) and len(value) == 2 and
         isinstance(value[0], str) and whole(value[1]) and value[1] >= 0))},
    {"settings": MapOf(ANY), "present": ListOf(TEXT)}))})


def number_text(value):
    """A setting in an id."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def row_id(case, table):
    """The id of a row: dimensions in the operator's order where it is known."""
    dims = case["dims"]
    entry = table.get(case["operator"])
    order = [dim["name"] for dim in entry["dims"] if dim["name"] in dims] \
        if entry else sorted(dims)
    parts = [f"{name}={dims[name]}" for name in order]
    parts += [f"{name}={number_text(value)}" for name, value in
              sorted((case.get("settings") or {}).items())]
    parts += [f"+{name}" for name in case.get("present") or []]
    return "/".join([case["operator"], case["dtype"], ",".join(parts),
                     case["boundary"], str(case["threads"])])


def parts_of(row):
    """An id as the parts of its shape and what is around them: rows of an
    operator that was not implemented yet had no order of dimensions, and the
    suite may have asked for less."""
    fields = row.split("/")
    if len(fields) != 5:
        return row, frozenset()
    return "/".join(fields[:2] + fields[3:]), frozenset(fields[2].split(","))


def read_suite(path):
    """The rows of a suite file; "threads" 0 stands for all."""
    try:
        text = pathlib.Path(path).read_text("utf-8")
        # Comments are allowed there.
        suite = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
    except OSError as error:
        raise ResultError(f"suite '{path}': cannot be read: "
                          f"{error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ResultError(f"suite '{path}': line {error.lineno} is not "
                          "JSON") from None
    except (ValueError, RecursionError):
        raise ResultError(f"suite '{path}': found no text that is JSON, "
                          "expected a suite") from None
    problems = []
    SUITE.check(suite, "suite", problems)
    if problems:
        raise ResultError(f"suite '{path}': {problems[0]}")
    return [{"operator": operator, "dtype": dtype, "dims": dims,
             "settings": group.get("settings"),
             "present": group.get("present"), "boundary": boundary[0],
             "threads": boundary[1]}
            for group in suite["groups"] for boundary in group["boundaries"]
            for dtype in group["dtypes"] for operator in group["operators"]
            for dims in group["shapes"]]


def expected_ids(cases, run, environment, table):
    """The ids that a run must have. What the run does not record about its own
    choice is not demanded: without "threads" and "filter", (prefix, None) of
    each row's operator, type and dimensions is."""
    cores = len(environment.get("affinity") or []) or environment["cores"]
    exact = "threads" in run and "filter" in run
    ids = []
    for case in cases:
        case = dict(case)
        if exact and run["threads"] >= 0:
            case["threads"] = run["threads"]
        case["threads"] = case["threads"] or cores
        name = row_id(case, table)
        if not exact:
            ids.append("/".join(name.split("/")[:3]) + "/")
        elif run["filter"] in name:
            ids.append(name)
    return list(dict.fromkeys(ids))
