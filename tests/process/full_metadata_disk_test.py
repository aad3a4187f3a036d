#!/usr/bin/env python3
"""The disk of the namespace fills up under a real NameNode: reads go on, changes are refused in clear words, nothing that was acknowledged
is lost, and when there is room again changes go on, without a restart. Also when the NameNode is killed and started while the disk is full.

Run by ctest. Needs root: the disk is a small tmpfs, in a mount name space of this process and of the daemons that it starts."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from real_cluster import BLOCK, ClusterTest, cluster, generated  # noqa: E402  pylint: disable=wrong-import-position

CLONE_NEWNS = 0x00020000
DISK_BYTES = 64 << 20
RESERVE_BYTES = 8 << 20


def own_mounts():
    """A mount name space for this process and its children. None, or why not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        return f"no mount name space: {os.strerror(ctypes.get_errno())}"
    done = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return done.stderr.decode().strip() if done.returncode != 0 else None


class FullMetadataDisk(ClusterTest):
    """The NameNode's directory alone is on the small disk."""

    KEYS = {
        **ClusterTest.KEYS,
        "dfs.heartbeat.interval": "1s",
        "dfs.namenode.resource.check.interval": "1s",  # Long enough that a write meets the full disk before the NameNode looks at it.
        "cairn.namenode.disk-reserve": RESERVE_BYTES,
        "dfs.namenode.resource.du.reserved": 1 << 20,
        # A call that is refused is asked again by the client: not for long here.
        "cairn.client.retry.budget": "3s",
        "cairn.client.call.timeout": "3s",
    }

    @classmethod
    def setUpClass(cls):
        why_not = "needs root" if os.geteuid() != 0 else own_mounts()
        if why_not:
            raise unittest.SkipTest(f"no small disk can be mounted: {why_not}")

    def setUp(self):
        ClusterTest.NUMBER += 1
        self.cluster = cluster.Cluster(f"test-{os.getpid()}-{ClusterTest.NUMBER}")
        shutil.rmtree(self.cluster.folder, ignore_errors=True)
        self.cluster.folder.mkdir(parents=True)
        self.cluster.lay_out(self.DATANODES, self.KEYS)
        self.disk = self.cluster.folder / "namenode" / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "cairn-test", str(self.disk)], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no small disk can be mounted: {mounted.stderr.decode().strip()}")
        self.addCleanup(shutil.rmtree, self.cluster.folder, True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)], check=False)
        self.addCleanup(self.cluster.stop)
        config = self.cluster.folder / "namenode" / "cairn.yaml"
        text = config.read_text(encoding="utf-8")
        config.write_text(re.sub(r"dfs\.namenode\.name\.dir: .*", f'dfs.namenode.name.dir: "{self.disk}/name"', text), encoding="utf-8")
        namenode = self.cluster.processes["namenode"]
        subprocess.run([*namenode.command, "--format"], check=True, capture_output=True)
        self.restart_all()
        self.environment = dict(os.environ, CAIRN_CONF=str(self.cluster.folder / "client.yaml"))

    # --- what the test does to the disk, and asks

    def fill(self, left=0):
        """All that is free but `left` bytes goes to a file beside the NameNode's directory."""
        with open(self.disk / "ballast", "ab") as ballast:
            free = shutil.disk_usage(self.disk).free - left
            while free > 0:
                ballast.write(b"x" * min(free, 1 << 20))
                ballast.flush()
                free -= 1 << 20

    def make_room(self):
        (self.disk / "ballast").unlink()

    def dfs(self, *arguments, data=b""):
        """Exit code, and standard error."""
        done = subprocess.run([str(cluster.CAIRN), "dfs", *arguments], input=data, capture_output=True, timeout=120, check=False,
                              env=self.environment)
        return done.returncode, done.stderr.decode(errors="replace")

    def readyz(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.cluster.ports['http']}/readyz", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def log_lines(self, since=0):
        return self.cluster.processes["namenode"].log.read_text(encoding="utf-8", errors="replace").splitlines()[since:]

    def write_until_refused(self, prefix, most=4000):
        """Makes directories of long names until one is refused; those that were acknowledged, and what was said of the refusal."""
        made = []
        for i in range(most):
            paths = [f"/{prefix}-{i}-{j}-" + "x" * 200 for j in range(100)]
            code, said = self.dfs("-mkdir", *paths)
            if code == 0:
                made += paths
                continue
            return made, said
        self.fail("the disk does not fill up")

    def names(self):
        command = [str(cluster.CAIRN), "dfs", "-ls", "/"]
        listed = subprocess.run(command, capture_output=True, timeout=120, check=True, env=self.environment).stdout.decode()
        return {line.split()[-1] for line in listed.splitlines()[1:]}

    def start_namenode_alive(self):
        """It is not ready while it takes no changes; it answers, though."""
        self.cluster.start_process("namenode")
        self.until("the NameNode answers", lambda: self.answers(), 60)

    def answers(self):
        self.assertTrue(self.cluster.processes["namenode"].alive(), "\n".join(self.log_lines()[-15:]))
        try:
            return self.readyz()[0] in (200, 503)
        except OSError:
            return False

    def can_read(self, path, data):
        command = [str(cluster.CAIRN), "dfs", "-cat", path]
        return subprocess.run(command, capture_output=True, timeout=120, check=False, env=self.environment).stdout == data

    # --- the tests

    def test_a_full_disk_is_got_over_without_a_restart(self):
        data = generated(2 * BLOCK + 5, 1)
        self.put("/before", data)
        lines_before = len(self.log_lines())
        self.fill()
        made, said = self.write_until_refused("full")
        self.assertRegex(said, r"No space left on device|no changes are taken|takes no changes|outcome")
        self.until("the NameNode says that it is read-only", lambda: self.metric("cairn_read_only") == 1)
        reasons = ("low_space", "full")  # The first if the NameNode was the quicker.
        self.until("and why", lambda: sum(self.metric(f'cairn_read_only_reason{{reason="{reason}"}}') for reason in reasons) == 1)
        status, why = self.readyz()
        self.assertEqual(status, 503)
        self.assertIn("read-only", why)
        # One line for the change of state, however many changes are refused.
        for _ in range(5):
            code, said = self.dfs("-mkdir", "/refused")
            self.assertEqual(code, 1)
        self.assertRegex(said, r"mkdir: .*(no changes are taken until there is room|takes no changes: resources are low|"
                         r"takes no changes since: .*No space left on device)")
        critical = [line for line in self.log_lines(lines_before) if "critical" in line.lower()]
        self.assertEqual(len(critical), 1, critical)
        self.assertRegex(critical[0], r"takes no more changes until there is room on its disk|takes no changes: resources are low")
        # Reads go on.
        self.assertTrue(self.can_read("/before", data))
        names = self.names()
        self.assertTrue(names.issuperset(made), "something acknowledged is not there")
        self.make_room()
        self.until("changes are taken", lambda: self.dfs("-mkdir", "-p", "/after")[0] == 0)
        self.assertEqual(self.metric("cairn_read_only"), 0)
        self.until("it is ready", lambda: self.readyz()[0] == 200)
        self.put("/written-after", data)
        self.assertTrue(self.can_read("/written-after", data))
        names = self.names()
        self.assertTrue(names.issuperset(made))
        # And again, with a kill in the end: what was acknowledged is on the disk.
        self.fill()
        more, _ = self.write_until_refused("again")
        self.make_room()
        self.until("changes are taken", lambda: self.dfs("-mkdir", "-p", "/after/again")[0] == 0)
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.assertTrue(self.names().issuperset(made + more + ["/after", "/before", "/written-after"]))
        self.until("its DataNodes are back", lambda: self.can_read("/before", data))

    def test_killed_and_started_while_the_disk_is_full_it_serves_reads(self):
        data = generated(BLOCK + 5, 2)
        self.put("/before", data)
        self.until("space is kept back", lambda: (self.disk / "name" / "reserve").exists())
        self.fill(left=1_500_000)
        made, _ = self.write_until_refused("full")
        self.until("the NameNode says that it is read-only", lambda: self.metric("cairn_read_only") == 1)
        self.fill()
        for attempt in range(2):  # The second start finds the reserve given up, and what it left.
            self.cluster.kill("namenode")
            lines_before = len(self.log_lines())
            self.start_namenode_alive()
            self.until("it says that it takes no changes", lambda: self.metric("cairn_read_only") == 1)
            self.assertTrue(self.names().issuperset(made + ["/before"]), attempt)
            self.until("the DataNodes tell where the blocks are", lambda: self.can_read("/before", data))
            code, said = self.dfs("-mkdir", "/refused")
            self.assertEqual(code, 1)
            self.assertRegex(said, r"takes no changes: resources are low|no changes are taken")
            self.assertEqual(self.readyz()[0], 503)
            lines = [line for line in self.log_lines(lines_before) if "takes no changes" in line]
            self.assertEqual(len(lines), 1, lines)
        self.make_room()
        self.until("changes are taken", lambda: self.dfs("-mkdir", "-p", "/after")[0] == 0)
        self.until("space is kept back again", lambda: (self.disk / "name" / "reserve").stat().st_size == RESERVE_BYTES)
        self.put("/written-after", data)
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.assertTrue(self.names().issuperset(made + ["/before", "/after", "/written-after"]))
        self.cluster.processes["namenode"].stop()
        checked = subprocess.run([str(cluster.CAIRN), "namespace", "check", str(self.disk / "name")], capture_output=True, timeout=120,
                                 check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout.decode() + checked.stderr.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
