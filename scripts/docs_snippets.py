#!/usr/bin/env python3
#===- docs_snippets.py - Code in the documentation is code of the tree ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Checks README.md and docs/ against the sources they show.

A C++, TableGen or CMake block must follow one of these comments:

    <!-- snippet: FILE NAME -->   the lines of FILE between "// snippet: NAME"
                                  and "// end snippet", without their common
                                  indentation
    <!-- quote: FILE -->          lines that stand in FILE one after another,
                                  indentation aside

Relative links must lead to files. --write copies the snippets into the pages.
Prints one line per fault, "page:line: what is wrong", and a last line with the
count. Exit status 0 when clean, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROVEN = {"cpp", "tablegen", "cmake"}

DIRECTIVE = re.compile(r"^<!-- (snippet|quote): (\S+)(?: (\S+))? -->$")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def read_lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def snippet(path, name):
    """The named region of a source file as lines, or None."""
    lines, found = read_lines(path), None
    for line in lines:
        text = line.strip()
        if text == f"// snippet: {name}":
            found = []
        elif found is not None and text == "// end snippet":
            return textwrap.dedent("\n".join(found)).splitlines()
        elif found is not None:
            found.append(line)
    return None


def is_quoted(path, block):
    source = [line.strip() for line in read_lines(path)]
    wanted = [line.strip() for line in block]
    return any(source[i:i + len(wanted)] == wanted
               for i in range(len(source) - len(wanted) + 1))


def blocks(lines):
    """Yields (first line, end line, language, directive) of fenced blocks; the
    lines are those of the content."""
    i = 0
    while i < len(lines):
        if not lines[i].startswith("```"):
            i += 1
            continue
        language = lines[i][3:].strip()
        directive = DIRECTIVE.match(lines[i - 1]) if i > 0 else None
        end = i + 1
        while end < len(lines) and not lines[end].startswith("```"):
            end += 1
        yield i + 1, end, language, directive
        i = end + 1


def check_page(page, write):
    lines, faults, result, done = read_lines(page), [], [], 0
    for first, end, language, directive in blocks(lines):
        block = lines[first:end]
        result += lines[done:first]
        done = end
        def fault(text):
            faults.append((first, text))
        if not directive:
            if language in PROVEN:
                fault(f"found a {language} block without a source, expected "
                      "<!-- snippet: FILE NAME --> or <!-- quote: FILE --> "
                      "above it")
            result += block
            continue
        kind, file, name = directive.groups()
        source = ROOT / file
        if not source.is_file():
            fault(f"found '{file}', expected a file")
            result += block
        elif kind == "quote":
            if not is_quoted(source, block):
                fault(f"found lines that do not stand in {file}")
            result += block
        else:
            wanted = snippet(source, name)
            if wanted is None:
                fault(f"found no snippet '{name}' in {file}")
                wanted = block
            elif wanted != block and not write:
                fault(f"found other lines than snippet '{name}' of {file}; "
                      "run scripts/docs_snippets.py --write")
            result += wanted
    result += lines[done:]
    if write and result != lines:
        page.write_text("\n".join(result) + "\n", encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: written")
    fenced = {n for first, end, _, _ in blocks(lines)
              for n in range(first, end)}
    for number, line in enumerate(lines):
        if number in fenced:
            continue
        for target in LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (page.parent / target).exists():
                faults.append((number + 1, f"found a link to '{target}', "
                               "expected a path that exists"))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    count = 0
    for page in pages:
        for line, text in check_page(page, arguments.write):
            print(f"{page.relative_to(ROOT)}:{line}: {text}")
            count += 1
    print(f"{len(pages)} pages, {count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
