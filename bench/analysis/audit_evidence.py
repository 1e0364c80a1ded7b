#===- bench/analysis/audit_evidence.py - What the audit demands of evidence -===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The part of a row's audit that is about correctness: comparisons with the
oracle, hashes of inputs and outputs, guard zones, which code ran."""

HASHED_BYTES = 64  # Shorter inputs may be equal by chance.
# Peers promise no error bound; they pass within this multiple of Tessera's.
PEER_FACTOR = 16


class Evidence:
    """The checks, for RowAudit."""

    def check_evidence(self, arm, arrays):
        if arm["status"] != "ok":
            return
        name = arm["name"]
        verification = arm.get("verification") or {}
        hashes, guards = arm.get("outputHashes") or [], arm.get("guards") or []
        for when, turn in (("before", 0), ("after", -1)):
            checked = verification.get(when) or []
            if not checked:
                self.report(name, f"verification.{when}", "found none, "
                            "expected every output compared")
            names = [item["output"] for item in checked]
            if len(set(names)) < len(names):
                self.report(name, f"verification.{when}", "found an output "
                            "twice")
            if arrays:
                for output in arrays[1].values():
                    if not output.optional and output.name not in names:
                        self.report(name, f"verification.{when}", "found no "
                                    f"output {output.name}")
            for item in checked:
                self.check_compared(arm, when, item, arrays)
                expected = hashes[turn].get(item["output"]) if hashes else None
                if item.get("hash") and item["hash"] != expected:
                    self.report(name, f"verification.{when}", "found another "
                                f"hash of {item['output']} than in its round")
        outputs = {when: sorted(item["output"] for item in items or [])
                   for when, items in verification.items()
                   if when in ("before", "after")}
        if len(outputs) == 2 and outputs["before"] != outputs["after"]:
            self.report(name, "verification", "found other outputs compared "
                        "after the timing than before it")
        if len(guards) != self.rounds:
            self.report(name, "guards", f"found {len(guards)}, expected "
                        f"{self.rounds}, one per round")
        for index, intact in enumerate(guards):
            if not intact:
                self.report(name, f"guards[{index}]", "found a damaged guard "
                            "zone of an arm whose status is 'ok'")
        self.check_hashes(arm, hashes, outputs.get("before") or [])

    def check_compared(self, arm, when, item, arrays):
        field = f"verification.{when}.{item['output']}"
        report = lambda text: self.report(arm["name"], field, text)
        if arrays:
            output = arrays[1].get(item["output"])
            if not output:
                report(f"found an output that {self.row['operator']} does not "
                       "have")
            elif item["elements"] != output.elements:
                report(f"found {item['elements']} elements, expected "
                       f"{output.elements} from the row's extents")
        if item["compared"] != item["elements"]:
            report(f"found {item['compared']} of {item['elements']} elements "
                   "compared, expected all")
        if item["wrong"]:
            report(f"found {item['wrong']} wrong elements of an arm whose "
                   "status is 'ok'")
        factor = item.get("factor")
        factor = 1 if factor is None else factor
        if arm["role"] != "peer" and not arm.get("vendor") and factor != 1:
            report(f"found {factor} times the error bound allowed, expected 1")
        if factor > PEER_FACTOR:
            report(f"found {factor} times the error bound allowed, expected at "
                   f"most {PEER_FACTOR}")
        used = item.get("boundUsed")
        if used is not None and used > factor:
            report(f"found {used} of the error bound used by an arm whose "
                   f"status is 'ok', expected at most {factor}")

    def check_hashes(self, arm, hashes, outputs):
        name = arm["name"]
        if len(hashes) != self.rounds:
            self.report(name, "outputHashes", f"found {len(hashes)}, expected "
                        f"{self.rounds}, one per round")
            return
        for index, found in enumerate(hashes):
            if sorted(found) != outputs:
                self.report(name, f"outputHashes[{index}]", "found hashes of "
                            f"{sorted(found)}, expected {outputs}")
        # The same code on the same data gives the same bits.
        if self.control is arm and self.subject and \
                self.subject["status"] == "ok":
            subject = self.subject.get("outputHashes") or []
            for index, (mine, other) in enumerate(zip(hashes, subject)):
                if mine != other:
                    self.report(name, f"outputHashes[{index}]", "found other "
                                "outputs than the subject's, whose object and "
                                "inputs are the same")
        seen = {}
        for index, key in enumerate(self.row.get("seeds") or []):
            if index < len(hashes) and \
                    seen.setdefault(key, hashes[index]) != hashes[index]:
                self.report(name, f"outputHashes[{index}]", "found other "
                            "outputs than in the round with the same seed")

    def check_inputs(self, arrays):
        inputs = self.row.get("inputs") or []
        if not inputs and any(arm["status"] == "ok" for arm in self.arms):
            self.report("", "inputs", "found none, expected their hashes")
        names = [item["name"] for item in inputs]
        for item in inputs:
            field = f"inputs.{item['name']}"
            if names.count(item["name"]) > 1:
                self.report("", field, "found twice")
            for when in ("before", "after"):
                if len(item[when]) != self.rounds:
                    self.report("", f"{field}.{when}", f"found "
                                f"{len(item[when])} hashes, expected "
                                f"{self.rounds}, one per round")
            for index, (one, other) in enumerate(zip(item["before"],
                                                     item["after"])):
                if one != other:
                    self.report("", f"{field}.after[{index}]", "found another "
                                "hash than before: an arm wrote to its input, "
                                "or the file was edited")
            if item["bytes"] >= HASHED_BYTES and \
                    len(set(item["before"])) < len(item["before"]):
                self.report("", f"{field}.before", "found the same data in two "
                            "rounds, expected fresh data in every round")
            known = arrays[0].get(item["name"]) if arrays else None
            if known and known.bytes != item["bytes"]:
                self.report("", f"{field}.bytes", f"found {item['bytes']}, "
                            f"expected {known.bytes} from the row's extents")
        if arrays and inputs:
            for known in arrays[0].values():
                if not known.optional and known.name not in names:
                    self.report("", "inputs", f"found no input {known.name}")

    def check_identity(self):
        def code(arm):
            return (arm.get("identity") or {}).get("object")

        subject, control = self.subject, self.control
        if not subject or subject["status"] != "ok":
            return
        if not code(subject):
            self.report(subject["name"], "identity.object", "found none, "
                        "expected the hash of the code that was timed")
        if control and control["status"] == "ok" and \
                code(control) != code(subject):
            self.report(control["name"], "identity.object", "found other code "
                        "than the subject's: no control pair")
        for arm in self.arms:
            if arm["role"] == "peer" and code(arm) and \
                    code(arm) == code(subject):
                self.report(arm["name"], "identity.object", "found the "
                            "subject's own code: a control, no peer")
