#!/usr/bin/env python3
"""SIGINT and SIGTERM while the CLI copies into the cluster: it ends with 130, says so, and leaves nothing behind."""

import os
import signal
import subprocess
import unittest

from real_cluster import BLOCK, ClusterTest, cluster, generated


class Interrupt(ClusterTest):
    DATANODES = 1
    KEYS = {"dfs.blocksize": BLOCK, "dfs.replication": 1}

    def interrupted(self, source, number, feed=b""):
        """Puts `source` to /d/file, sends the signal once the copy is under way, and looks at what is left."""
        self.cairn("dfs", "-mkdir", "-p", "/d")
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-put", str(source), "/d/file"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as put:
            if feed:
                put.stdin.write(feed)
                put.stdin.flush()
            self.until("bytes arrive", lambda: any(f.stat().st_size > 8192 for f in self.replica_files("datanode1")))
            self.assertIn("._COPYING_", self.cairn("dfs", "-ls", "/d").decode())
            put.send_signal(number)  # The pipe stays open: only the signal can end a read of it.
            code = put.wait(60)
            said = put.stderr.read().decode(errors="replace")
        self.assertEqual(code, 130, said)
        self.assertEqual(said.splitlines(), ["put: `/d/file': Interrupted"])
        self.assertEqual(self.cairn("dfs", "-ls", "/d"), b"")
        self.until("the replicas are unlinked", lambda: not self.replica_files("datanode1"))

    def large_file(self):
        """More than is copied before the signal comes; no blocks on this disk."""
        path = self.cluster.folder / "large"
        with open(path, "wb") as file:
            os.truncate(file.fileno(), 64 << 30)
        return path

    def test_sigterm_while_there_is_no_namenode(self):
        command = [str(cluster.CAIRN), "dfs", "-fs", "cairn://127.0.0.1:1", "-ls", "/"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as listing:
            self.assertIn("waiting for NameNode 127.0.0.1:1", listing.stderr.readline())
            listing.send_signal(signal.SIGTERM)
            self.assertEqual(listing.wait(30), 130)

    def test_sigint_while_a_pipe_is_copied(self):
        self.interrupted("-", signal.SIGINT, feed=generated(2 * BLOCK + 100, 1))

    def test_sigterm_while_a_pipe_is_copied(self):
        self.interrupted("-", signal.SIGTERM, feed=generated(2 * BLOCK + 100, 2))

    def test_sigint_while_a_file_is_copied(self):
        self.interrupted(self.large_file(), signal.SIGINT)

    def test_sigterm_while_a_file_is_copied(self):
        self.interrupted(self.large_file(), signal.SIGTERM)

    def test_what_was_there_before_stays_when_its_replacement_is_interrupted(self):
        self.cairn("dfs", "-mkdir", "-p", "/d")
        self.cairn("dfs", "-put", "-", "/d/file", data=b"old")
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-put", "-f", "-", "/d/file"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as put:
            put.stdin.write(generated(2 * BLOCK + 100, 3))
            put.stdin.flush()
            self.until("the copy is under way", lambda: "._COPYING_" in self.cairn("dfs", "-ls", "/d").decode())
            put.send_signal(signal.SIGINT)
            self.assertEqual(put.wait(60), 130)
        self.assertEqual(self.cat("/d/file"), b"old")
        self.assertEqual(self.cairn("dfs", "-ls", "/d").decode().count("/d/file"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
