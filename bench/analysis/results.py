#===- bench/analysis/results.py - Loads a result file ----------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Loads a result file: whole, of the known schema, of the expected shape, with
its digest. Everything that is not so is a ResultError, whose text says the
file, what was found, what was expected and what to do."""

import hashlib
import json
import lzma
import re

SCHEMA = "tessera-bench"
VERSION = 1
TAIL = re.compile(rb',"digest":"([^"]*)"\}\n?\Z')
XZ = b"\xfd7zXZ\x00"
# Above the largest result, and far below what a hostile file could ask for.
MOST_BYTES = 1 << 28


class ResultError(Exception):
    """A file that is no readable result."""


# --- The shape of a result -------------------------------------------------


def kind(value):
    """What a value is, for messages."""
    if value is None:
        return "null"
    for types, name in ((bool, "a boolean"), (int, "a whole number"),
                        (float, "a number"), (str, "a text"),
                        (list, "a list"), (dict, "an object")):
        if isinstance(value, types):
            return name
    return type(value).__name__


class Is:
    """A value of one kind, within limits."""

    def __init__(self, name, test):
        self.name, self.test = name, test

    def check(self, value, path, problems):
        if not self.test(value):
            shown = json.dumps(value)
            shown = kind(value) if len(shown) > 40 else shown
            problems.append(f"{path}: found {shown}, expected {self.name}")


class ListOf:
    def __init__(self, item):
        self.item = item

    def check(self, value, path, problems):
        if not isinstance(value, list):
            problems.append(f"{path}: found {kind(value)}, expected a list")
            return
        for index, item in enumerate(value):
            self.item.check(item, f"{path}[{index}]", problems)


class MapOf:
    def __init__(self, item):
        self.item = item

    def check(self, value, path, problems):
        if not isinstance(value, dict):
            problems.append(f"{path}: found {kind(value)}, expected an object")
            return
        for name, item in value.items():
            self.item.check(item, f"{path}.{name}", problems)


class Record:
    """An object with these fields. Other fields are let through: new ones may
    come with the same schema version."""

    def __init__(self, required, optional=None):
        self.required, self.optional = required, optional or {}

    def check(self, value, path, problems):
        if not isinstance(value, dict):
            problems.append(f"{path}: found {kind(value)}, expected an object")
            return
        for name, item in self.required.items():
            if name not in value:
                problems.append(f"{path}: found no field \"{name}\"")
            else:
                item.check(value[name], f"{path}.{name}", problems)
        for name, item in self.optional.items():
            if value.get(name) is not None:
                item.check(value[name], f"{path}.{name}", problems)


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def one_of(*names):
    return Is("one of " + ", ".join(names), lambda value: value in names)


TEXT = Is("a text", lambda value: isinstance(value, str))
BOOLEAN = Is("a boolean", lambda value: isinstance(value, bool))
INTEGER = Is("a whole number", whole)
COUNT = Is("a whole number of at least 0", lambda v: whole(v) and v >= 0)
POSITIVE = Is("a whole number of at least 1", lambda v: whole(v) and v >= 1)
NUMBER = Is("a number", number)
HASH = Is("32 hexadecimal digits", lambda value: isinstance(value, str) and
          re.fullmatch("[0-9a-f]{32}", value))
ANY = Is("anything", lambda value: True)
BOUNDARY = one_of("native", "prepared", "call", "batch", "cold", "disk",
                  "device")

CHECKED = Record({"output": TEXT, "elements": COUNT, "compared": COUNT,
                  "wrong": COUNT},
                 {"maxError": NUMBER, "bound": NUMBER, "boundUsed": NUMBER,
                  "factor": NUMBER, "hash": HASH})
ARM = Record(
    {"name": TEXT, "role": one_of("subject", "control", "variant", "peer"),
     "status": one_of("ok", "wrong", "failed", "slow", "unsupported",
                      "missing"),
     "boundary": BOUNDARY, "threads": POSITIVE},
    {"peer": TEXT, "vendor": TEXT, "why": TEXT, "version": TEXT, "mathMode": TEXT,
     "identity": MapOf(ANY), "detail": ANY, "inner": POSITIVE, "callNanoseconds": NUMBER,
     "samples": ListOf(ListOf(NUMBER)),
     "verification": Record({}, {"before": ListOf(CHECKED),
                                 "after": ListOf(CHECKED)}),
     "outputHashes": ListOf(MapOf(HASH)), "guards": ListOf(BOOLEAN),
     "statistics": Record({"roundMedians": ListOf(NUMBER), "median": NUMBER,
                           "low": NUMBER, "high": NUMBER})})
ROW = Record(
    {"id": TEXT, "operator": TEXT, "dtype": TEXT, "dims": MapOf(COUNT),
     "boundary": BOUNDARY, "threads": POSITIVE,
     "status": one_of("ok", "not implemented", "failed")},
    {"settings": MapOf(ANY), "present": ListOf(TEXT), "plan": MapOf(TEXT),
     "why": TEXT,
     "rounds": POSITIVE, "samplesPerTurn": POSITIVE,
     "work": Record({"bytesRead": NUMBER, "bytesWritten": NUMBER,
                     "flops": NUMBER}),
     "floor": Record({"by": one_of("bandwidth", "flops", "none")},
                     {"nanoseconds": NUMBER, "ceiling": TEXT}),
     "seeds": ListOf(COUNT),
     "inputs": ListOf(Record({"name": TEXT, "bytes": COUNT,
                              "before": ListOf(HASH), "after": ListOf(HASH)})),
     "outputs": ListOf(Record({"name": TEXT, "dtype": TEXT,
                               "extents": ListOf(COUNT)})),
     "order": ListOf(ListOf(COUNT)), "arms": ListOf(ARM),
     "comparisons": ListOf(Record(
         {"arm": TEXT, "ratios": ListOf(NUMBER), "median": NUMBER,
          "low": NUMBER, "high": NUMBER, "min": NUMBER, "max": NUMBER})),
     "noise": Record({}, {"ratios": ListOf(NUMBER), "median": NUMBER,
                          "p90": NUMBER}),
     "verdict": Record({"result": one_of("ahead", "level", "behind", "alone",
                                         "failed", "not implemented")},
                       {"bestPeer": TEXT, "ratio": NUMBER,
                        "overFloor": NUMBER})})
CEILING = Record({"name": TEXT, "threads": POSITIVE, "inner": POSITIVE,
                  "samples": ListOf(NUMBER)},
                 {"workingSetBytes": COUNT, "readBytes": NUMBER,
                  "writtenBytes": NUMBER, "flops": NUMBER,
                  "bytesPerSecond": NUMBER, "flopsPerSecond": NUMBER,
                  "nanoseconds": NUMBER})
FILE = Record({
    "run": Record({"suite": TEXT, "rounds": POSITIVE,
                   "samplesPerTurn": POSITIVE, "seed": COUNT},
                  {"id": TEXT, "started": TEXT, "finished": TEXT,
                   "command": TEXT, "revision": TEXT, "dirty": BOOLEAN,
                   "version": TEXT, "passed": BOOLEAN,
                   "rowIds": ListOf(TEXT), "threads": INTEGER,
                   "filter": TEXT}),
    "environment": Record({"machine": TEXT, "cores": POSITIVE},
                          {"cpu": TEXT, "isa": TEXT, "affinity": ListOf(COUNT),
                           "caches": ListOf(MapOf(ANY))}),
    "peers": ListOf(Record({"name": TEXT,
                            "status": one_of("ok", "missing", "failed")},
                           {"version": TEXT, "mathMode": TEXT, "why": TEXT})),
    "rows": ListOf(ROW),
}, {"ceilings": Record({"rows": ListOf(CEILING)})})


# --- Loading ---------------------------------------------------------------


class Result:
    """A loaded file. `digest_problem` says what is wrong with the digest, or is
    None."""

    def __init__(self, path, document, digest_problem=None):
        self.path, self.document = str(path), document
        self.digest_problem = digest_problem

    def __getitem__(self, name):
        return self.document[name]

    @property
    def ceilings(self):
        return (self.document.get("ceilings") or {}).get("rows") or []


def digest_of(compact):
    """The digest of a compact document, given as bytes without it."""
    return hashlib.sha256(compact).hexdigest()[:32]


def dump(document):
    """The bytes of a result file: sorted and compact, the digest last."""
    rest = {name: value for name, value in document.items()
            if name != "digest"}
    compact = json.dumps(rest, sort_keys=True, separators=(",", ":"),
                         ensure_ascii=False, allow_nan=False).encode()
    return (compact[:-1] + b',"digest":"' + digest_of(compact).encode() +
            b'"}\n')


def unique_fields(pairs):
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'found the field "{twice}" twice in an object')
    return fields


def no_constant(text):
    raise ValueError(f"found {text}, expected a finite number")


def check_digest(raw, document):
    match = TAIL.search(raw)
    if not match:
        return ("digest: found none as the last field, expected one; the file "
                "was edited: run the suite again")
    expected = digest_of(raw[:match.start()] + b"}")
    if match.group(1).decode("utf-8", "replace") != expected:
        return (f'digest: found "{document.get("digest")}", expected '
                f'"{expected}" for these bytes; the file was edited: take the '
                "original or run the suite again")
    return None


def decompressed(path, raw):
    """The bytes that an xz file holds."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        whole = reader.decompress(raw, MOST_BYTES)
    except lzma.LZMAError as error:
        raise ResultError(f"{path}: {error}; expected an xz file of a result: "
                          "copy it again") from None
    if not reader.eof:
        found = (f"more than {MOST_BYTES} bytes" if len(whole) >= MOST_BYTES
                 else "compressed data that end early")
        raise ResultError(f"{path}: found {found}, expected an xz file of a "
                          "result: copy it again")
    return whole


def load(path, strict=True):
    """Loads a result file, plain or compressed with xz. With `strict` a wrong
    digest is an error, otherwise it is noted in the Result."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}; expected "
                          "a file that tessera bench --json wrote") from None
    if raw.startswith(XZ):
        raw = decompressed(path, raw)
    if not raw.strip():
        raise ResultError(f"{path}: found an empty file, expected a result; "
                          "run the suite again")
    try:
        document = json.loads(raw.decode("utf-8"),
                              object_pairs_hook=unique_fields,
                              parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        if str(path).endswith(".partial"):
            raise ResultError(
                f"{path}: found the rows of an unfinished run, expected a "
                "result; run the same tessera bench command again to finish "
                "it") from None
        if isinstance(error, json.JSONDecodeError) and \
                not raw.rstrip().endswith(b"}"):
            raise ResultError(
                f"{path}: found {len(raw)} bytes that end within a value, "
                "expected a whole JSON object; the file is truncated: copy it "
                "again or run the suite again") from None
        raise ResultError(f"{path}: {error}; expected the JSON of a result: "
                          "take the original or run the suite again") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise ResultError(
            f"{path}: found schema {json.dumps(found)}, expected \"{SCHEMA}\"; "
            "give a file that tessera bench --json wrote")
    version = document.get("schemaVersion")
    if version != VERSION or isinstance(version, bool):
        run = document.get("run")
        revision = run.get("revision") if isinstance(run, dict) else None
        raise ResultError(
            f"{path}: found schema version {json.dumps(version)}, expected "
            f"{VERSION}; use the bench folder of the revision that wrote it "
            f"({revision or 'not recorded'})")
    problem = check_digest(raw, document)
    if problem and strict:
        raise ResultError(f"{path}: {problem}")
    problems = []
    FILE.check(document, "file", problems)
    if problems:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise ResultError(
            f"{path}: " + "; ".join(problems[:5]) + more +
            "; the file was edited or written by another version: take the "
            "original or run the suite again")
    return Result(path, document, problem)


# --- Looking things up -----------------------------------------------------


def arms_of(row):
    return row.get("arms") or []


def arm_by_role(row, role):
    """The first arm of a role, or None."""
    return next((arm for arm in arms_of(row) if arm["role"] == role), None)


def shape_of(row):
    """The extents of a row as text, in the order of its id, and what else
    tells it from its neighbours."""
    parts = row["id"].split("/")
    parts = parts[2].split(",") if len(parts) == 5 else []
    order = [part.partition("=")[0] for part in parts]
    order = [name for name in order if name in row["dims"]] or sorted(
        row["dims"])
    extras = [part for part in parts
              if part.partition("=")[0] not in row["dims"]]
    return " ".join(["×".join(str(row["dims"][name]) for name in order)] +
                    extras)
