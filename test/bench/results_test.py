#===- test/bench/results_test.py - Unreadable files ------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""What is no result is refused with a message that says what to do."""

import copy
import lzma
import pathlib
import tempfile
import unittest

import synthetic
from analysis.results import MOST_BYTES, ResultError, dump, load, shape_of

DOCUMENT = synthetic.make_document(seed=2, operators=("softmax",),
                                   shapes=[(17, 65)])


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "r.json"

    def refuse(self, raw, *parts):
        self.path.write_bytes(raw)
        with self.assertRaises(ResultError) as caught:
            load(self.path)
        text = str(caught.exception)
        for part in (str(self.path),) + parts:
            self.assertIn(part, text)
        self.assertNotIn("\n", text)

    def altered(self, change):
        document = copy.deepcopy(DOCUMENT)
        change(document)
        return dump(document)

    def test_valid(self):
        self.path.write_bytes(dump(DOCUMENT))
        result = load(self.path)
        self.assertIsNone(result.digest_problem)
        self.assertEqual(result["run"], DOCUMENT["run"])
        self.assertEqual(shape_of(result["rows"][0]), "17×65")

    def test_missing(self):
        with self.assertRaisesRegex(ResultError, "cannot be read: No such"):
            load(self.path)

    def test_folder(self):
        with self.assertRaisesRegex(ResultError, "cannot be read: Is a dir"):
            load(self.path.parent)

    def test_empty(self):
        self.refuse(b"", "found an empty file", "run the suite again")

    def test_truncated(self):
        raw = dump(DOCUMENT)
        self.refuse(raw[:len(raw) // 2], "truncated", "copy it again")

    def test_truncated_digest(self):
        self.refuse(dump(DOCUMENT)[:-5], "truncated")

    def test_compressed(self):
        self.path.write_bytes(lzma.compress(dump(DOCUMENT)))
        result = load(self.path)
        self.assertIsNone(result.digest_problem)
        self.assertEqual(result["rows"], DOCUMENT["rows"])

    def test_compressed_and_truncated(self):
        raw = lzma.compress(dump(DOCUMENT))
        self.refuse(raw[:len(raw) // 2], "end early", "copy it again")

    def test_compressed_and_damaged(self):
        raw = bytearray(lzma.compress(dump(DOCUMENT)))
        raw[len(raw) // 2] ^= 255
        self.refuse(bytes(raw), "copy it again")

    def test_compressed_beyond_all_bounds(self):
        self.refuse(lzma.compress(bytes(MOST_BYTES + 1), preset=0),
                    f"more than {MOST_BYTES} bytes")

    def test_partial(self):
        self.path = self.path.with_suffix(".json.partial")
        self.refuse(b'{"run":1}\n{"id":2}\n', "unfinished run",
                    "same tessera bench command")

    def test_not_json(self):
        self.refuse(b"hello }", "expected the JSON of a result")

    def test_not_utf8(self):
        self.refuse(b"\xff\xfe{}", "expected the JSON of a result")

    def test_field_twice(self):
        self.refuse(b'{"schema":"tessera-bench","schema":"x"}',
                    'found the field "schema" twice')

    def test_not_a_number(self):
        self.refuse(b'{"schema":NaN}', "found NaN")

    def test_deep(self):
        self.refuse(b"[" * 100000, "r.json")
        self.refuse(b"[" * 100000 + b"}", "r.json")

    def test_other_schema(self):
        self.refuse(b'{"schema":1}', "found schema 1")
        self.refuse(b"[1]", "found schema null")

    def test_other_version(self):
        self.refuse(self.altered(lambda d: d.update(schemaVersion=2)),
                    "found schema version 2, expected 1", "abc1234")
        self.refuse(b'{"schema":"tessera-bench","run":3}',
                    "found schema version null", "not recorded")

    def test_edited(self):
        raw = dump(DOCUMENT)
        self.refuse(raw.replace(b'"cores":1', b'"cores":2'),
                    "the file was edited", "take the original")

    def test_no_digest(self):
        raw = dump(DOCUMENT)
        self.refuse(raw[:raw.index(b',"digest"')] + b"}\n", "digest: found none")

    def test_shape(self):
        self.refuse(self.altered(lambda d: d.pop("environment")),
                    'file: found no field "environment"')
        self.refuse(self.altered(lambda d: d["rows"][0].update(arms={})),
                    "file.rows[0].arms: found an object, expected a list")
        self.refuse(self.altered(
            lambda d: d["rows"][0]["arms"][0].update(status="fine")),
            'file.rows[0].arms[0].status: found "fine"', "one of ok, wrong")
        self.refuse(self.altered(
            lambda d: d["rows"][0]["arms"][0].update(samples=[["a"]])),
            'samples[0][0]: found "a", expected a number')
        self.refuse(self.altered(
            lambda d: d["rows"][0]["arms"][0].update(threads=True)),
            "threads: found true, expected a whole number of at least 1")

    def test_fields_to_come(self):
        self.path.write_bytes(self.altered(lambda d: d["run"].update(new=[1])))
        load(self.path)


if __name__ == "__main__":
    unittest.main()
