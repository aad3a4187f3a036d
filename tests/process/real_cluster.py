"""What tests of real daemons share: a cluster for each test, and the CLI on it. Not a test itself."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy" / "dev"))

import cluster  # noqa: E402  pylint: disable=wrong-import-position

BLOCK = 1 << 20


def generated(size, seed):
    """Bytes that differ at every offset and for every seed, fast: a keyed stream of SHA-256 blocks."""
    if size == 0:
        return b""
    out = bytearray()
    counter = 0
    while len(out) < size:
        out += hashlib.shake_128(b"%d-%d" % (seed, counter)).digest(1 << 20)
        counter += 1
    return bytes(out[:size])


class ClusterTest(unittest.TestCase):
    """A cluster for each test, and the CLI on it."""

    DATANODES = 3
    KEYS = {"dfs.blocksize": BLOCK}
    NUMBER = 0

    def setUp(self):
        ClusterTest.NUMBER += 1
        self.cluster = cluster.Cluster.start(f"test-{os.getpid()}-{ClusterTest.NUMBER}", self.DATANODES, self.KEYS)
        self.addCleanup(shutil.rmtree, self.cluster.folder, True)
        self.addCleanup(self.cluster.stop)

    def run_cairn(self, *arguments, data=None, timeout=180):
        command = [str(cluster.CAIRN), arguments[0], "-fs", self.cluster.address("cairn"), *arguments[1:]]
        return subprocess.run(command, input=data if data is not None else b"", capture_output=True, timeout=timeout, check=False)

    def cairn(self, *arguments, data=None, code=0):
        done = self.run_cairn(*arguments, data=data)
        self.assertEqual(done.returncode, code, f"{' '.join(done.args)}\n{done.stderr.decode(errors='replace')}")
        return done.stdout if code == 0 else done.stderr.decode(errors="replace")

    def put(self, path, data):
        """As HDFS, -put makes no parents."""
        self.cairn("dfs", "-mkdir", "-p", path.rsplit("/", 1)[0] or "/")
        self.cairn("dfs", "-put", "-f", "-", path, data=data)

    def cat(self, path):
        return self.cairn("dfs", "-cat", path)

    def restart_all(self):
        for name in self.cluster.processes:
            self.cluster.start_process(name)
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)

    def until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f"not after {seconds} s: {what}")
            time.sleep(0.1)

    def metric(self, series, name="namenode"):
        metrics = self.cluster.processes[name].metrics()
        self.assertIn(series, metrics, f"not among the metrics of {name}")
        return metrics[series]

    def key_of(self, name, key):
        """What the configuration of that process says."""
        config = (self.cluster.folder / name / "cairn.yaml").read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(key)}: (.*)$", config, re.MULTILINE)
        self.assertIsNotNone(found, f"{name} has no {key}")
        return json.loads(found.group(1))

    def replica_files(self, name):
        return sorted((self.cluster.folder / name / "data").rglob("blk_*"))
