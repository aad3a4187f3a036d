#!/usr/bin/env python3
"""The CLI with a NameNode that is not there: it says whom it waits for, and gives up at once where waiting has no use."""

import re
import socket
import subprocess
import time
import unittest

from real_cluster import ClusterTest, cluster


def closed_port():
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*words):
    begin = time.monotonic()
    done = subprocess.run([str(cluster.CAIRN), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr.splitlines(), time.monotonic() - begin


class UnreachableNamenode(unittest.TestCase):
    def test_a_command_that_waits_says_so_once_and_why_it_gave_up(self):
        port = closed_port()
        code, said, seconds = run("-fs", f"cairn://127.0.0.1:{port}", "-D", "cairn.client.retry.budget=6s", "dfs", "-ls", "/")
        self.assertEqual(code, 1)
        self.assertEqual(len(said), 2, said)
        waiting = re.fullmatch(rf"cairn: waiting for NameNode 127\.0\.0\.1:{port}: connection refused; giving up in (\d+) s", said[0])
        self.assertTrue(waiting, said[0])
        self.assertLessEqual(int(waiting.group(1)), 4)
        self.assertRegex(said[1], rf"^ls: `/': gave up after \d+\.\d s and \d+ tries \(cairn\.client\.retry\.budget\): "
                                  rf"127\.0\.0\.1:{port}: connection refused$")
        self.assertLess(seconds, 20)

    def test_a_host_name_that_does_not_exist_fails_at_once(self):
        for group, verb in (("dfs", "-ls"), ("dfsadmin", "-report")):
            words = ["/"] if group == "dfs" else []
            code, said, seconds = run(group, "-fs", "cairn://no-such-host.invalid", verb, *words)
            self.assertEqual(code, 1)
            self.assertEqual(len(said), 1, said)
            self.assertTrue(said[0].startswith(f"{group}: NameNode no-such-host.invalid:8021: the host name "), said)
            self.assertLess(seconds, 20)

    def test_a_report_names_the_address_once(self):
        port = closed_port()
        code, said, _ = run("dfsadmin", "-fs", f"cairn://127.0.0.1:{port}", "-report")
        self.assertEqual((code, said), (1, [f"report: NameNode 127.0.0.1:{port}: connection refused"]))


class ANormalStart(ClusterTest):
    DATANODES = 2

    def test_warns_of_nothing(self):
        for name, process in self.cluster.processes.items():
            log = process.log.read_text(encoding="utf-8", errors="replace")
            self.assertEqual([line for line in log.splitlines() if "Z W " in line or "Z E " in line], [], name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
