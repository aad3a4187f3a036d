#!/usr/bin/env python3
"""cairn balancer on real daemons: its table, its exit codes, an interrupt, a NameNode that is killed and started again in between."""

import re
import shutil
import signal
import subprocess
import unittest

from real_cluster import BLOCK, ClusterTest, cluster, generated

HEADER = "Time Stamp               Iteration#  Bytes Already Moved  Bytes Left To Move  Bytes Being Moved  NameNode"
ROW = re.compile(r"^[A-Z][a-z]{2} \d+, \d{4} \d+:\d\d:\d\d [AP]M +(\d+) +(\S+ \S+) +(\S+ \S+) +(\S+ \S+)  (cairn://\S+)$")


class Balancer(ClusterTest):
    DATANODES = 4
    KEYS = {"dfs.blocksize": BLOCK, "cairn.namenode.confirm-interval": "1s", "dfs.heartbeat.interval": "1s"}
    FILES = 12

    def setUp(self):
        super().setUp()
        # The fourth node is away while all is written.
        self.cluster.processes["datanode4"].stop()
        self.files = {f"/in/{i}": generated(2 * BLOCK, i) for i in range(self.FILES)}
        for path, data in self.files.items():
            self.put(path, data)
        self.cluster.start_process("datanode4")
        self.cluster.wait_ready("datanode4")
        # All of these share one disk; so 3 MiB of it are the threshold.
        self.threshold = f"{100 * 3 * BLOCK / shutil.disk_usage(self.cluster.folder).total:.12f}"

    def balancer(self, *arguments, code=0):
        done = self.run_cairn("balancer", *arguments, timeout=240)
        said = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, said)
        return said

    def start_balancer(self, bandwidth):
        command = [str(cluster.CAIRN), "-fs", self.cluster.address("cairn"), "balancer", "-threshold", self.threshold,
                   "-bandwidth", bandwidth]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def expect_whole(self):
        for path, data in self.files.items():
            self.assertEqual(self.cat(path), data, path)
        self.until("no copy is too many", lambda: "Over-replicated blocks:\t0" in self.cairn("fsck", "/").decode()
                   and sum(len(self.replica_files(f"datanode{i}")) for i in range(1, 5)) == 3 * 2 * self.FILES)
        fsck = self.cairn("fsck", "/").decode()
        self.assertIn("is HEALTHY", fsck)
        self.assertRegex(fsck, r"Under-replicated blocks:\t0")

    def test_a_new_node_is_filled_and_the_table_says_so(self):
        self.assertEqual(len(self.replica_files("datanode4")), 0)
        said = self.balancer("-threshold", self.threshold)
        lines = said.splitlines()
        self.assertEqual(lines[0], HEADER)
        rows = [match for match in map(ROW.match, lines) if match]
        self.assertGreaterEqual(len(rows), 2, said)
        self.assertEqual(rows[0].group(1), "1")
        self.assertEqual(rows[0].group(2), "0 B")
        self.assertEqual(rows[0].group(5), self.cluster.address("cairn"))
        self.assertEqual(rows[-1].group(3), "0 B")
        self.assertIn("The cluster is balanced. Exiting...", lines)
        self.assertRegex(lines[-1], r"Balancing took [\d.]+ (seconds|minutes)$")
        self.assertGreaterEqual(len(self.replica_files("datanode4")), 10)
        self.expect_whole()
        # Again: there is nothing to do.
        said = self.balancer("-threshold", self.threshold)
        self.assertIn("The cluster is balanced. Exiting...", said)

    def test_exit_codes_and_a_second_balancer(self):
        self.assertIn("Usage: cairn balancer", self.balancer("-threshold", "0", code=251))
        self.assertIn("no DataNode 'nobody' is known here.  Exiting ...", self.balancer("-source", "nobody", code=252))
        said = self.balancer("-threshold", self.threshold, "-source", self.key_of("datanode4", "dfs.datanode.address"), code=254)
        self.assertIn("No block can be moved. Exiting...", said)
        with self.start_balancer("64k") as first:
            self.assertEqual(first.stdout.readline().decode().rstrip("\n"), HEADER)
            self.assertTrue(ROW.match(first.stdout.readline().decode().rstrip("\n")))
            self.assertIn("Another balancer is running. Exiting...", self.balancer("-threshold", self.threshold, code=255))
            self.until("something moves", lambda: self.replica_files("datanode4"))
            first.send_signal(signal.SIGINT)
            self.assertEqual(first.wait(60), 130)
            self.assertIn("Interrupted", first.stderr.read().decode())
        # What was under way ends, at its pace or at this one's.
        self.balancer("-threshold", self.threshold)
        self.expect_whole()

    def test_a_namenode_that_is_killed_in_the_middle(self):
        with self.start_balancer("512k") as run:
            self.until("something moves", lambda: self.replica_files("datanode4"))
            self.cluster.kill("namenode")
            self.cluster.start_process("namenode")
            self.cluster.wait_ready("namenode")
            said = run.communicate(timeout=200)[0].decode()
            self.assertEqual(run.returncode, 0, said)
        self.assertIn("The cluster is balanced. Exiting...", said)
        self.expect_whole()

    def test_bandwidth_is_told_to_datanodes(self):
        node = self.key_of("datanode1", "cairn.datanode.grpc-bind-address")
        show = lambda: self.cairn("dfsadmin", "-getBalancerBandwidth", node).decode().strip()  # noqa: E731
        self.assertEqual(show(), "Balancer bandwidth is 104857600 bytes per second.")
        self.assertEqual(self.cairn("dfsadmin", "-setBalancerBandwidth", "5m").decode().strip(), "Balancer bandwidth is set to 5242880")
        self.until("it has heard", lambda: show() == "Balancer bandwidth is 5242880 bytes per second.")


if __name__ == "__main__":
    unittest.main(verbosity=2)
