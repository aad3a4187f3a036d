#!/usr/bin/env python3
"""A NameNode dies between deciding a delete and making it durable: nobody has heard of the delete, and after the restart the file is there.

Run by ctest."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from real_cluster import BLOCK, ClusterTest, cluster, generated  # noqa: E402  pylint: disable=wrong-import-position

CRASH = 134  # The exit code of the fault point's action.


class CrashBeforeSync(ClusterTest):
    """Heartbeats each second, so that a command would come soon."""

    KEYS = {**ClusterTest.KEYS, "dfs.heartbeat.interval": "1s"}

    def datanodes(self):
        return [name for name in self.cluster.processes if name != "namenode"]

    def restart_namenode(self, arguments=(), environment=None):
        self.cluster.processes["namenode"].stop()
        self.cluster.start_process("namenode", arguments, environment)
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)

    def replicas(self):
        return {name: [(path.name, path.stat().st_size) for path in self.replica_files(name)] for name in self.datanodes()}

    def batches(self):
        return int(self.metric("cairn_journal_batches_total"))

    def test_the_file_is_there_and_no_datanode_heard_of_its_delete(self):
        data = generated(2 * BLOCK + 100, 1)
        self.put("/d/file", data)
        # How many batches a NameNode commits by itself from its start on, so that the next is the delete's.
        self.restart_namenode()
        time.sleep(3)
        committed = self.batches()
        self.restart_namenode(["--fault-points"], {"CAIRN_FAULTS": f"local_journal.before_commit=crash@{committed}"})
        time.sleep(3)
        self.assertEqual(self.batches(), committed)
        before = self.replicas()
        self.assertEqual(sum(len(files) for files in before.values()), 9)

        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-rm", "-skipTrash", "/d/file"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as removal:
            namenode = self.cluster.processes["namenode"]
            self.assertTrue(namenode.wait_gone(60), "the NameNode did not come to the fault point")
            self.assertEqual(namenode.child.returncode, CRASH)
            os.kill(removal.pid, signal.SIGKILL)  # Else it would ask again, and then the file would go.
            said = removal.communicate(timeout=60)[0]
        self.assertNotIn(b"Deleted", said)

        self.cluster.start_process("namenode")
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)
        self.assertEqual(self.cat("/d/file"), data)
        time.sleep(5)  # Several heartbeats: a command on its way would have come.
        self.assertEqual(self.replicas(), before)
        for name in self.datanodes():
            self.assertEqual(self.metric("cairn_reclaim_pending_blocks", name), 0, name)
        self.assertEqual(self.cat("/d/file"), data)
        # And now it goes, everywhere.
        self.cairn("dfs", "-rm", "-skipTrash", "/d/file")
        self.until("every replica is gone", lambda: not any(self.replicas().values()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
