#!/usr/bin/env python3
"""A mass deletion, with writers beside it, in which nodes die, come back, and are taken out of service: nothing that was acknowledged is
lost, no write fails, fsck ends healthy, and the disks hold exactly the replicas that the namespace knows.

Run by ctest."""

import collections
import concurrent.futures
import re
import subprocess
import threading
import unittest

from real_cluster import BLOCK, ClusterTest, generated

WRITERS = 3
FILES_OF_A_PUT = 20
OLD_DIRECTORIES = 8  # Of 200 files each.
SIZES = (0, 1, 513, 20_000, 65_537, BLOCK, BLOCK + 1, 2 * BLOCK + 777)  # Of a put's files, in turn.


class Writer(threading.Thread):
    """Puts files, twenty at a time, until told to stop; knows what it was promised."""

    def __init__(self, test, number):
        super().__init__()
        self.test, self.number = test, number
        self.promised = []  # Directories whose put ended with 0.
        self.failures = []
        self.ended = threading.Event()
        self.local = test.cluster.folder / f"local{number}"
        self.local.mkdir()
        for file in range(FILES_OF_A_PUT):
            (self.local / f"f{file}").write_bytes(self.content(file))

    def content(self, file):
        return generated(SIZES[file % len(SIZES)], 1000 * self.number + file)

    def run(self):
        files = [str(self.local / f"f{file}") for file in range(FILES_OF_A_PUT)]
        put = 0
        while not self.ended.is_set() and not self.failures:
            directory = f"/new/{self.number}/{put}"
            for arguments in (["-mkdir", "-p", directory], ["-put", *files, directory]):
                done = self.test.run_cairn("dfs", *arguments)
                if done.returncode != 0:
                    self.failures.append(done.stderr.decode(errors="replace"))
                    return
            self.promised.append(directory)
            put += 1
            self.ended.wait(0.3)  # So that not all of the test is reading it back.

    def end(self):
        self.ended.set()
        self.join()


class Storm(ClusterTest):
    """Five nodes, short intervals."""

    DATANODES = 5
    KEYS = {"dfs.blocksize": BLOCK, "dfs.heartbeat.interval": "500ms", "dfs.namenode.stale.datanode.interval": "2s",
            "cairn.namenode.dead-interval": "5s", "dfs.namenode.decommission.interval": "1s"}

    def transfer_port(self, name):
        return int(self.key_of(name, "dfs.datanode.address").rsplit(":", 1)[1])

    def nodes(self):
        """State and admin state of each, as the NameNode has it, by transfer port."""
        found = {}
        port = None
        for line in self.cairn("dfsadmin", "-report").decode().splitlines():
            if match := re.match(r"Name: 127\.0\.0\.1:(\d+)", line):
                port = int(match.group(1))
            elif match := re.match(r"Decommission Status : (.+)", line):
                found[port] = match.group(1)
        return found

    def promised_replicas(self):
        """{(block's file name, transfer port)} that the namespace knows, and fsck's text; each block of the namespace is among them."""
        text = self.cairn("fsck", "/", "-files", "-blocks", "-locations").decode()
        known = set()
        for match in re.finditer(r"^\d+\. (blk_\d+)_\d+ len=\d+ .*$", text, re.MULTILINE):
            for port in re.findall(r"DatanodeInfoWithStorage\[127\.0\.0\.1:(\d+),", match.group(0)):
                known.add((match.group(1), int(port)))
        return known, text

    def replicas_on_disks(self):
        return {(file.name, self.transfer_port(name)) for name in self.cluster.processes if name != "namenode"
                for file in self.replica_files(name)}

    def settled(self):
        """True when every block has its three replicas, and the disks hold exactly what the namespace knows."""
        known, text = self.promised_replicas()
        copies = collections.Counter(name for name, _ in known)
        self.last = (text, known, self.replicas_on_disks())
        return ("is HEALTHY" in text and "Under-replicated blocks:\t0 " in text and "Over-replicated blocks:\t0 " in text
                and set(copies.values()) == {3} and known == self.last[2])

    def wait_settled(self, seconds=90):
        try:
            self.until("disks and namespace agree", self.settled, seconds)
        except AssertionError:
            text, known, found = self.last
            print(text[text.index("\nStatus:"):] if "\nStatus:" in text else text[-2000:])
            print(f"only known: {sorted(known - found)[:20]}\nonly on disks: {sorted(found - known)[:20]}", flush=True)
            raise

    def test_nothing_is_lost_while_nodes_die_come_back_and_are_taken_out(self):
        old = self.cluster.folder / "old"
        old.mkdir()
        for number in range(200):
            (old / f"f{number}").write_bytes(generated(1000, number))
        files = [str(old / f"f{number}") for number in range(200)]
        self.cairn("dfs", "-mkdir", "-p", *[f"/old/{directory}" for directory in range(OLD_DIRECTORIES)])
        with concurrent.futures.ThreadPoolExecutor(OLD_DIRECTORIES) as pool:
            list(pool.map(lambda directory: self.cairn("dfs", "-put", *files, f"/old/{directory}"), range(OLD_DIRECTORIES)))
        writers = [Writer(self, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
            self.addCleanup(writer.end)
        self.until("all writers write", lambda: all(writer.promised for writer in writers))

        def written():
            return sum(len(writer.promised) for writer in writers)

        # The storm, and in it: one node dies and comes back soon, one is taken out, one dies for longer than it takes to be given up.
        self.cairn("dfs", "-rm", "-r", "-skipTrash", "/old")
        self.cluster.kill("datanode1")
        leaving = self.transfer_port("datanode2")
        self.cairn("dfsadmin", "-decommission", f"127.0.0.1:{leaving}")
        at = written()
        self.until("writers go on", lambda: written() >= at + 3)
        self.cluster.start_process("datanode1")
        self.cluster.wait_ready("datanode1")
        self.cluster.kill("datanode3")
        self.until("the node is drained", lambda: self.nodes()[leaving] == "Decommissioned", 120)
        at = written()
        self.until("writers go on", lambda: written() >= at + 3)
        self.cluster.start_process("datanode3")
        self.cluster.wait_ready("datanode3")
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        at = written()
        self.until("writers go on", lambda: written() >= at + 3)
        for writer in writers:
            writer.end()
        self.assertEqual([writer.failures for writer in writers], [[]] * WRITERS)
        print(f"{written() * FILES_OF_A_PUT} files were promised", flush=True)

        # What the drained node has is no longer wanted there; it is switched off, and its disk is out of the account.
        self.until("the node is drained", lambda: self.nodes()[leaving] == "Decommissioned", 120)
        self.cluster.processes["datanode2"].stop()
        drained = self.cluster.processes.pop("datanode2")
        self.addCleanup(self.cluster.processes.__setitem__, "datanode2", drained)
        self.until("the drained node is given up", lambda: "Dead datanodes (1):" in self.cairn("dfsadmin", "-report").decode())
        self.wait_settled()
        # All of it once more from the disks: nothing lived in memory only.
        for name in self.cluster.processes:
            self.cluster.kill(name)
        self.restart_all()
        self.wait_settled()
        for writer in writers:
            for directory in writer.promised:
                back = self.cluster.folder / "back"
                subprocess.run(["rm", "-rf", str(back)], check=True)
                self.cairn("dfs", "-get", directory, str(back))
                for file in range(FILES_OF_A_PUT):
                    self.assertEqual((back / f"f{file}").read_bytes(), writer.content(file), f"{directory}/f{file}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
