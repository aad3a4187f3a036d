#!/usr/bin/env python3
"""Directories that a daemon cannot use: unformatted, read-only, of another cluster. It says so in one line and ends, or goes on without
a disk that may be missing; nothing in the directory changes, and a cluster that runs is not touched."""

import hashlib
import os
import shutil
import subprocess
import unittest

from real_cluster import BLOCK, ClusterTest, cluster, generated

# In a mount namespace of its own, where the directory "$1" cannot be written by anybody, also not by root; then the rest.
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" "$1" && shift && exec "$@"'


def read_only_prefix(directory):
    return ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(directory)]


def why_no_read_only_mounts():
    """What keeps this machine from making a directory read-only, or nothing."""
    if os.geteuid() != 0:
        return "only root can mount a directory read-only"
    probe = cluster.RUN_FOLDER / f"probe-{os.getpid()}"
    probe.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*read_only_prefix(probe), "sh", "-c", f"! touch {probe}/x"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=30, check=False)
    shutil.rmtree(probe)
    return "" if done.returncode == 0 else f"no read-only bind mounts here: {done.stderr.strip()}"


NO_READ_ONLY_MOUNTS = why_no_read_only_mounts()


def bytes_of(directory):
    """What is in a directory, without the lock that every process that tries it takes."""
    return {str(p.relative_to(directory)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(directory.rglob("*")) if p.is_file() and p.name != "LOCK"}


class BadDirectories(unittest.TestCase):
    """A daemon that cannot serve says why in one line and ends."""

    def setUp(self):
        self.folder = cluster.RUN_FOLDER / f"test-bad-{os.getpid()}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.folder, True)

    def ends_with(self, binary, keys, *arguments):
        config = self.folder / "cairn.yaml"
        cluster.Cluster.write_yaml(config, keys)
        done = subprocess.run([str(binary), "--config", str(config), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr

    def namenode_keys(self):
        return {"dfs.namenode.name.dir": str(self.folder / "name"), "cairn.namenode.grpc-bind-address": "127.0.0.1:0",
                "dfs.namenode.http-address": "127.0.0.1:0"}

    def test_an_unformatted_namenode_directory_is_refused_with_the_command(self):
        text = self.ends_with(cluster.NAMENODE, self.namenode_keys())
        self.assertIn("--format", text)
        self.assertIn(str(self.folder / "name"), text)

    def test_format_refuses_a_directory_that_is_not_empty(self):
        (self.folder / "name").mkdir()
        (self.folder / "name" / "something").write_text("x", encoding="utf-8")
        text = self.ends_with(cluster.NAMENODE, self.namenode_keys(), "--format")
        self.assertIn(str(self.folder / "name"), text)

    def test_an_unknown_key_is_named_with_its_line(self):
        text = self.ends_with(cluster.NAMENODE, {**self.namenode_keys(), "dfs.blocksizes": 5})
        self.assertIn("dfs.blocksizes", text)
        self.assertIn(":4", text)


class DataDirectories(ClusterTest):
    """A DataNode's directories, on a cluster that runs. One DataNode is stopped and started again on what the test makes."""

    DATANODES = 2
    KEYS = {"dfs.blocksize": BLOCK, "dfs.replication": 2, "dfs.namenode.replication.min": 1}

    def setUp(self):
        super().setUp()
        self.contents = {"/before/one": generated(3000, 1), "/before/two": generated(2 * BLOCK + 5, 2)}
        for path, data in self.contents.items():
            self.put(path, data)
        self.node = self.cluster.processes["datanode2"]
        self.command = list(self.node.command)
        self.data = self.cluster.folder / "datanode2" / "data"
        self.assertEqual(len(self.replica_files("datanode2")), 4)
        self.node.stop()

    def configure(self, directories, tolerated=0):
        """The node's command with these data directories."""
        config = self.cluster.folder / "datanode2" / "other.yaml"
        lines = (self.cluster.folder / "datanode2" / "cairn.yaml").read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if not line.startswith("dfs.datanode.data.dir")]
        lines.append(f'dfs.datanode.data.dir: "{",".join(str(d) for d in directories)}"')
        lines.append(f"dfs.datanode.failed.volumes.tolerated: {tolerated}")
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [str(cluster.DATANODE), "--config", str(config)]

    def refused(self, command, *words):
        """The daemon ends by itself with one line that has all the words; none else is a warning or an error."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 1, said)
        clear = [line for line in said.splitlines() if line.startswith("cairn-datanode: ")]
        self.assertEqual(len(clear), 1, said)
        for word in words:
            self.assertIn(str(word), clear[0])
        loud = [line for line in said.splitlines() if "Z W " in line or "Z E " in line]
        self.assertEqual(loud, [], said)

    def everything_is_there(self):
        for path, data in self.contents.items():
            self.assertEqual(self.cat(path), data, path)
        self.put("/after", b"after")
        self.assertEqual(self.cat("/after"), b"after")
        self.assertEqual(self.cluster.processes["namenode"].alive(), True)

    def start_again(self, command):
        self.node.command = command
        self.cluster.start_process("datanode2")
        self.cluster.wait_ready("datanode2")

    @unittest.skipIf(NO_READ_ONLY_MOUNTS, NO_READ_ONLY_MOUNTS)
    def test_a_read_only_directory_is_refused_and_named(self):
        before = bytes_of(self.data)
        self.refused([*read_only_prefix(self.data), *self.command], self.data, "read-only", "dfs.datanode.data.dir")
        self.assertEqual(bytes_of(self.data), before)
        self.everything_is_there()
        self.start_again(self.command)
        self.everything_is_there()

    @unittest.skipIf(NO_READ_ONLY_MOUNTS, NO_READ_ONLY_MOUNTS)
    def test_an_empty_read_only_directory_is_refused_and_named(self):
        empty = self.cluster.folder / "empty"
        empty.mkdir()
        self.refused([*read_only_prefix(empty), *self.configure([empty])], empty, "read-only", "dfs.datanode.data.dir")
        self.assertEqual(list(empty.iterdir()), [])
        self.everything_is_there()

    @unittest.skipIf(NO_READ_ONLY_MOUNTS, NO_READ_ONLY_MOUNTS)
    def test_a_node_goes_on_without_as_many_directories_as_may_be_missing(self):
        more = self.cluster.folder / "datanode2" / "more"
        self.start_again(self.configure([self.data, more]))
        self.until("the second volume is used", lambda: self.put("/fill", generated(BLOCK, 3)) or any(more.rglob("blk_*")))
        self.node.stop()
        before = bytes_of(more)
        prefix = read_only_prefix(more)
        self.refused([*prefix, *self.configure([self.data, more])], more, "read-only", "1 of 2 data directories",
                     "dfs.datanode.failed.volumes.tolerated is 0")
        self.assertEqual(bytes_of(more), before)
        self.start_again([*prefix, *self.configure([self.data, more], tolerated=1)])
        self.everything_is_there()
        log = self.node.log.read_text(encoding="utf-8", errors="replace")
        self.assertEqual(sum("is left out" in line and str(more) in line for line in log.splitlines()), 1)
        self.assertEqual(bytes_of(more), before)

    def test_another_clusters_directory_is_refused_and_nothing_of_either_cluster_is_harmed(self):
        other = cluster.Cluster.start(f"test-other-{os.getpid()}", 1, {"dfs.blocksize": BLOCK})
        self.addCleanup(shutil.rmtree, other.folder, True)
        self.addCleanup(other.stop)
        address = other.address("cairn")
        put = [str(cluster.CAIRN), "dfs", "-fs", address, "-put", "-", "/theirs"]
        subprocess.run(put, input=generated(BLOCK + 9, 4), check=True, timeout=60)
        other.processes["datanode1"].stop()
        theirs = other.folder / "datanode1" / "data"
        before = bytes_of(theirs)
        self.assertEqual(sum("blk_" in name for name in before), 2)
        # Alone, and after or before the node's own.
        self.refused(self.configure([theirs]), theirs, "belongs to cluster", "cairn.namenode.grpc-address", "dfs.datanode.data.dir")
        self.refused(self.configure([self.data, theirs]), theirs, "dfs.datanode.data.dir")
        self.refused(self.configure([theirs, self.data], tolerated=1), self.data, "dfs.datanode.data.dir")
        self.assertEqual(bytes_of(theirs), before)
        self.everything_is_there()
        self.start_again(self.command)
        self.everything_is_there()
        report = self.cairn("dfsadmin", "-report").decode()
        self.assertIn("Live datanodes (2)", report)
        other.start_process("datanode1")
        other.wait_ready("datanode1")
        got = subprocess.run([str(cluster.CAIRN), "dfs", "-fs", address, "-cat", "/theirs"], capture_output=True, check=True, timeout=60)
        self.assertEqual(got.stdout, generated(BLOCK + 9, 4))

    def test_a_directory_with_other_things_is_refused_and_left_alone(self):
        home = self.cluster.folder / "home"
        home.mkdir()
        (home / "thesis.tex").write_text("x", encoding="utf-8")
        self.refused(self.configure([home]), home, "thesis.tex", "dfs.datanode.data.dir")
        self.assertEqual(sorted(bytes_of(home)), ["thesis.tex"])
        self.everything_is_there()


if __name__ == "__main__":
    unittest.main(verbosity=2)
