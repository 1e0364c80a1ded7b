#===- test_faults.py - Peers that fail do not harm a run --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Runs `tessera bench` beside the modes of faulty_peer.py: each failure stands
in the result with its reason, the other arms are measured all the same, and the
exit status says that something failed. TESSERA_BINARY names the program; without
it build/release/bin/tessera is tested."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEER = pathlib.Path(__file__).resolve().parent / "faulty_peer.py"


def program():
    return os.environ.get("TESSERA_BINARY",
                          str(ROOT / "build/release/bin/tessera"))


class Run:
    """One row with these modes as its peers."""

    def __init__(self, modes, statuses=None, boundary="native",
                 seconds="6"):
        with tempfile.TemporaryDirectory() as folder:
            peers = [{"name": mode, "status": "ok",
                      "command": [sys.executable, str(PEER), mode]}
                     for mode in modes]
            for name, why in (statuses or {}).items():
                peers.append({"name": name, "status": "missing", "why": why})
            (pathlib.Path(folder) / "peers.json").write_text(
                json.dumps({"peers": peers}))
            file = pathlib.Path(folder) / "result.json"
            start = time.monotonic()
            self.process = subprocess.run(
                [program(), "bench", "copy", "--dims", "rows=4,cols=8",
                 "--boundary", boundary, "--peers", "all", "--rounds", "2",
                 "--samples", "2", "--answer-seconds", "2",
                 "--row-seconds", seconds,
                 "--json", str(file)],
                env={**os.environ, "TESSERA_PEERS_DIR": folder,
                     "TESSERA_BENCH_DIR": str(ROOT / "bench")},
                capture_output=True, text=True, timeout=300)
            self.seconds = time.monotonic() - start
            self.result = json.loads(file.read_text())
            self.audit = subprocess.run(
                [sys.executable, str(ROOT / "bench/audit"), str(file)],
                capture_output=True, text=True, timeout=300)
        self.row = self.result["rows"][0]
        self.arms = {arm["name"]: arm for arm in self.row["arms"]}


# Mode: (status, a part of the reason).
FAULTS = {
    "absent": ("failed", "exited with status 3"),
    "mute": ("failed", "exited with status 0"),
    "crash": ("failed", "signal 11"),
    "exit": ("failed", "exited with status 7"),
    "garbage": ("failed", "garbage"),
    "endless": ("failed", "garbage"),
    "kinds": ("failed", "garbage"),
    "samples": ("failed", "garbage"),
    "negative": ("failed", "garbage"),
    "zero": ("failed", "a sample of 0 nanoseconds"),
    "future": ("failed", "garbage"),
    "deep": ("failed", "garbage"),
    "twice": ("failed", "a reply to no request"),
    "identity": ("failed", "garbage"),
    "hang": ("failed", "no answer within 2 s"),
    "wrong": ("wrong", "before timing"),
    "late": ("wrong", "after timing"),
    "outside": ("wrong", "outside its outputs"),
    "inputs": ("wrong", "its inputs were overwritten"),
}


@unittest.skipUnless(os.access(program(), os.X_OK),
                     f"{program()} is not built")
class FaultsTest(unittest.TestCase):
    def check_measured(self, run, *names):
        for name in names:
            arm = run.arms[name]
            self.assertEqual(arm["status"], "ok", arm["why"])
            self.assertEqual(len(arm["samples"]), len(run.row["order"]), name)
            self.assertTrue(arm["verification"]["after"], name)

    def test_each_fault_stands_in_the_row(self):
        run = Run([*FAULTS, "good"])
        self.assertEqual(run.process.returncode, 1, run.process.stderr)
        for mode, (status, why) in FAULTS.items():
            with self.subTest(mode=mode):
                arm = run.arms[mode]
                self.assertEqual(arm["status"], status, arm["why"])
                self.assertIn(why, arm["why"])
                self.assertIn(f"  {mode}: {status}", run.process.stdout)
        self.check_measured(run, "tessera", "tessera-control", "good")
        self.assertEqual(run.row["status"], "ok", run.row["why"])
        # Two seconds for the arm that hangs.
        self.assertLess(run.seconds, 120)

    def test_inputs_changed_in_a_round_fail_the_row(self):
        run = Run(["inputs-late", "good"])
        self.assertEqual(run.process.returncode, 1)
        self.assertEqual(run.row["status"], "failed")
        self.assertIn("inputs", run.row["why"])

    def test_good_run_passes(self):
        run = Run(["good", "refuse", "reasonless", "boundary"],
                  statuses={"gone": "no such wheel"})
        self.assertEqual(run.process.returncode, 0,
                         run.process.stdout + run.process.stderr)
        self.assertEqual(run.arms["refuse"]["status"], "unsupported")
        self.assertIn("copies only", run.arms["refuse"]["why"])
        self.assertEqual(run.arms["reasonless"]["why"], "gave no reason")
        # Another boundary is another measurement.
        self.assertEqual(run.arms["boundary"]["status"], "unsupported")
        self.assertIn("'native'", run.arms["boundary"]["why"])
        self.assertEqual(run.arms["boundary"]["samples"], [])
        self.assertIn("gone is missing: no such wheel", run.process.stdout)
        listed = {peer["name"]: peer for peer in run.result["peers"]}
        self.assertEqual(listed["gone"]["why"], "no such wheel")

    def test_peers_are_measured_where_tessera_is_not(self):
        run = Run(["device", "good"], boundary="device")
        self.assertEqual(run.process.returncode, 0,
                         run.process.stdout + run.process.stderr)
        self.assertEqual(run.row["status"], "not implemented")
        self.assertIn("'device'", run.row["why"])
        self.assertEqual(run.row["verdict"]["result"], "not implemented")
        self.assertEqual(run.arms["tessera"]["status"], "unsupported")
        self.assertEqual(run.arms["good"]["status"], "unsupported")
        self.check_measured(run, "device")
        self.assertEqual(run.audit.returncode, 0, run.audit.stdout)

    def test_slow_arm_shows_its_time(self):
        run = Run(["slow"])
        self.check_measured(run, "slow")
        self.assertGreaterEqual(run.arms["slow"]["statistics"]["median"], 2e6)
        self.assertEqual(run.row["verdict"]["result"], "ahead")
        self.assertLess(run.row["verdict"]["ratio"], 0.01)

    def test_hopeless_peer_is_not_timed(self):
        run = Run(["crawl", "good"], seconds="0.5")
        self.check_measured(run, "good")
        arm = run.arms["crawl"]
        self.assertEqual(arm["status"], "slow", arm["why"])
        self.assertIn("times the fastest arm's", arm["why"])
        self.assertGreaterEqual(arm["callNanoseconds"], 3e8)
        self.assertEqual(arm["samples"], [])
        self.assertIn("  crawl: slow", run.process.stdout)
        # No fault of the run: the peer is right, and said to be behind.
        self.assertEqual(run.process.returncode, 0, run.process.stdout)
        self.assertEqual(run.audit.returncode, 0, run.audit.stdout)
        self.assertEqual(run.row["verdict"]["bestPeer"], "good")

    def test_cold_call_has_its_parts(self):
        parts = ["trace", "plan", "compile", "load", "firstCall"]
        run = Run([], boundary="cold")
        self.assertEqual(run.process.returncode, 0, run.process.stderr)
        for name in ("tessera", "tessera-control"):
            split = run.arms[name]["cold"]["split"]
            self.assertEqual(sorted(split), sorted(parts))
            for part in parts:
                self.assertGreater(split[part], 0, split)
            # The parts are those of one call like the timed ones.
            median = run.arms[name]["statistics"]["median"]
            self.assertLess(sum(split.values()), 50 * median)
            self.assertGreater(50 * sum(split.values()), median)

    def test_call_from_disk_has_its_parts(self):
        parts = ["trace", "lookup", "load", "firstCall"]
        # Whatever TESSERA_CACHE_DIR says: arms have folders of their own.
        run = Run([], boundary="disk")
        self.assertEqual(run.process.returncode, 0, run.process.stderr)
        self.assertEqual(run.audit.returncode, 0, run.audit.stdout)
        for name in ("tessera", "tessera-control"):
            arm = run.arms[name]
            self.assertEqual(arm["inner"], 1)
            self.assertEqual(sorted(arm["cold"]["split"]), sorted(parts))
            for part in parts:
                self.assertGreater(arm["cold"]["split"][part], 0)
        self.assertEqual(run.row["floor"]["by"], "none")

    def test_prepared_launches_are_amortized(self):
        run = Run([], boundary="prepared")
        self.assertEqual(run.process.returncode, 0, run.process.stderr)
        self.assertEqual(run.audit.returncode, 0, run.audit.stdout)
        for name in ("tessera", "tessera-control"):
            self.assertGreater(run.arms[name]["inner"], 1)

    def test_another_version_of_a_peer_does_not_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "peers.json").write_text(json.dumps(
                {"peers": [{"name": "good", "status": "ok", "command":
                            [sys.executable, str(PEER), "good"]}]}))
            command = [program(), "bench", "copy", "--dims", "rows=4,cols=8",
                       "--peers", "all", "--rounds", "10000",
                       "--json", folder + "/r.json"]
            given = {**os.environ, "TESSERA_PEERS_DIR": folder,
                     "TESSERA_BENCH_DIR": str(ROOT / "bench")}
            partial = pathlib.Path(folder) / "r.json.partial"
            with subprocess.Popen(command, env=given,
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                end = time.monotonic() + 120
                while time.monotonic() < end and not (
                        partial.exists() and '"id":"peers"' in
                        partial.read_text()):
                    time.sleep(0.05)
                process.kill()
            kept = partial.read_text()
            again = subprocess.run(command,
                                   env={**given, "FAULTY_VERSION": "2"},
                                   capture_output=True, text=True, timeout=60)
            self.assertEqual(again.returncode, 2, again.stderr)
            self.assertIn("peer 'good' has version '2', the interrupted run "
                          "had '1'", again.stderr)
            self.assertEqual(partial.read_text(), kept)

    def test_unknown_peer(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.run(
                [program(), "bench", "copy", "--peers", "nobody"],
                env={**os.environ, "TESSERA_PEERS_DIR": folder},
                cwd=folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("unknown peer 'nobody'", process.stderr)


if __name__ == "__main__":
    unittest.main()
