#!/usr/bin/env python3
"""Real daemons on this machine, driven by the CLI: kill -9, restarts, bad input.

Each class starts clusters of its own in build/run/test-<pid>-<n>, and removes them. Run by ctest for the build folder it is in; by hand
the preset is CAIRN_PRESET, else release."""

import signal
import socket
import subprocess
import unittest

from real_cluster import BLOCK, ClusterTest, cluster, generated

EDGES = (0, 1, 511, 512, 513, 65536, 65537, BLOCK, BLOCK + 1, 3 * BLOCK + 777)


class Durability(ClusterTest):
    """What was acknowledged is there after kill -9 of everything."""

    def test_edge_sizes_come_back_identical_after_kill_of_all_four(self):
        contents = {f"/edges/{size}": generated(size, size) for size in EDGES}
        for path, data in contents.items():
            self.put(path, data)
        for name in self.cluster.processes:
            self.cluster.kill(name)
        self.restart_all()
        for path, data in contents.items():
            self.assertEqual(self.cat(path), data, path)

    def test_namespace_changes_survive_kill_of_the_namenode(self):
        self.put("/a/file", b"first")
        self.cairn("dfs", "-mkdir", "-p", "/b/c")
        self.cairn("dfs", "-mv", "/a/file", "/b/c/moved")
        self.cairn("dfs", "-touchz", "/a/gone")
        self.cairn("dfs", "-test", "-e", "/a/gone")
        self.cairn("dfs", "-rm", "-skipTrash", "/a/gone")
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.assertEqual(self.cat("/b/c/moved"), b"first")
        self.cairn("dfs", "-test", "-e", "/a/gone", code=1)

    def test_a_writer_outlives_a_restart_of_the_namenode(self):
        data = generated(8 * BLOCK, 5)
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-put", "-", "/long"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
            writer.stdin.write(data[:3 * BLOCK])
            writer.stdin.flush()
            self.until("blocks arrive", lambda: len(self.replica_files("datanode1")) >= 2)
            self.cluster.kill("namenode")
            writer.stdin.write(data[3 * BLOCK:4 * BLOCK])
            writer.stdin.flush()
            self.cluster.start_process("namenode")
            writer.stdin.write(data[4 * BLOCK:])
            writer.stdin.close()
            self.assertEqual(writer.wait(120), 0, writer.stderr.read().decode(errors="replace"))
        self.assertEqual(self.cat("/long"), data)


class LostDatanode(ClusterTest):
    """A DataNode dies for good."""

    DATANODES = 4
    KEYS = {"dfs.blocksize": BLOCK, "dfs.heartbeat.interval": "1s", "dfs.namenode.stale.datanode.interval": "3s",
            "cairn.namenode.dead-interval": "6s"}

    def test_every_block_is_back_to_three_replicas(self):
        data = generated(5 * BLOCK, 9)
        self.put("/file", data)
        victim = next(n for n in self.cluster.processes if n != "namenode" and self.replica_files(n))
        self.cluster.kill(victim)
        others = [n for n in self.cluster.processes if n not in ("namenode", victim)]

        def copies():
            names = [f.name for n in others for f in self.replica_files(n)]
            return {name: names.count(name) for name in set(names)}
        self.until("five blocks with three replicas each on the others", lambda: sorted(copies().values()) == [3] * 5, 90)
        self.assertEqual(self.cat("/file"), data)

    def test_a_put_goes_on_when_a_node_of_its_pipeline_is_killed(self):
        data = generated(6 * BLOCK, 11)
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-put", "-", "/long"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
            writer.stdin.write(data[:2 * BLOCK + 1000])
            writer.stdin.flush()
            names = [n for n in self.cluster.processes if n != "namenode"]
            self.until("a node has replicas", lambda: any(self.replica_files(n) for n in names))
            self.cluster.kill(next(n for n in names if self.replica_files(n)))
            writer.stdin.write(data[2 * BLOCK + 1000:])
            writer.stdin.close()
            self.assertEqual(writer.wait(120), 0, writer.stderr.read().decode(errors="replace"))
        self.assertEqual(self.cat("/long"), data)


class BadInput(ClusterTest):
    """Bad input costs its sender a clear error and nobody else anything."""

    def test_garbage_on_any_port_harms_nothing(self):
        self.put("/before", b"before")
        ports = {process.http_port for process in self.cluster.processes.values()} | {self.cluster.ports["grpc"]}
        for name in self.cluster.processes:
            text = (self.cluster.folder / name / "cairn.yaml").read_text(encoding="utf-8")
            for line in text.splitlines():
                if line.startswith(("dfs.datanode.address", "cairn.datanode.grpc-bind-address")):
                    ports.add(int(line.rsplit(":", 1)[1].strip(' "')))
        garbage = [b"\x00" * 64, b"\xff" * 4096, b"GET / HTTP/9.9\r\n\r\n", generated(1 << 16, 1), b"\x00\x1c\x50" + b"\xff" * 20,
                   b"\x00\x1c\xfe\x00", b"\x00\x1c\x51\x05hello", b"\x00\x1d\x50\x00", b"x"]
        for port in sorted(ports):
            for piece in garbage:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                    try:
                        connection.sendall(piece)
                        connection.shutdown(socket.SHUT_WR)
                        connection.settimeout(10)
                        while connection.recv(4096):
                            pass
                    except OSError:
                        pass
        self.assertTrue(all(process.alive() for process in self.cluster.processes.values()))
        self.assertEqual(self.cat("/before"), b"before")
        self.put("/after", b"after")
        self.assertEqual(self.cat("/after"), b"after")

    def test_unknown_paths_and_wrong_arguments_answer_as_hdfs_does(self):
        self.assertIn("No such file or directory", self.cairn("dfs", "-ls", "/nowhere", code=1))
        self.assertIn("No such file or directory", self.cairn("dfs", "-cat", "/nowhere", code=1))
        self.cairn("dfs", "-nonsense", code=255)


class CleanStop(ClusterTest):
    """SIGTERM."""

    def test_every_daemon_ends_with_0(self):
        self.put("/file", b"x")
        for name, process in self.cluster.processes.items():
            process.signal(signal.SIGTERM)
            self.assertEqual(process.child.wait(30), 0, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
