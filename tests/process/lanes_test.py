#!/usr/bin/env python3
"""Deletions, heartbeats, reports and writes on real DataNodes do not wait for one another, whichever of them is slow.

Run by ctest."""

import json
import shutil
import time
import unittest

from real_cluster import ClusterTest, generated


class LanesTest(ClusterTest):
    """What the tests below share."""

    def datanodes(self):
        return [process for name, process in self.cluster.processes.items() if name != "namenode"]

    def restart_datanodes(self, faults):
        """With these fault points armed; with none if that is empty."""
        for name, process in self.cluster.processes.items():
            if name != "namenode":
                process.stop()
                self.cluster.start_process(name, ["--fault-points"] if faults else [], {"CAIRN_FAULTS": faults} if faults else None)
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)

    def local_files(self, count, size):
        """New ones, each of its own content."""
        local = self.cluster.folder / "local"
        shutil.rmtree(local, ignore_errors=True)
        local.mkdir()
        for number in range(count):
            (local / f"file-{number}").write_bytes(generated(size + number, number))
        return [str(local / f"file-{number}") for number in range(count)]

    def put_all(self, files, directory):
        """In one process of the CLI; the seconds it took."""
        self.cairn("dfs", "-mkdir", "-p", directory)
        begin = time.monotonic()
        self.cairn("dfs", "-put", *files, directory)
        return time.monotonic() - begin

    def total(self, metric):
        return sum(process.metrics()[metric] for process in self.datanodes())


class NothingWaitsForADeletion(LanesTest):
    """Closes go on while deletions, or the answers of heartbeats, are blocked on every DataNode."""

    def close_200_files(self, directory):
        seconds = self.put_all(self.local_files(200, 2000), directory)
        self.assertEqual(self.cat(f"{directory}/file-199"), generated(2199, 199))
        return seconds

    def test_200_closes_finish_while_deletions_are_blocked(self):
        names = [n for n in self.cluster.processes if n != "namenode"]
        self.close_200_files("/old")
        self.restart_datanodes("datanode.deleter.unlink=block")
        self.cairn("dfs", "-rm", "-r", "-skipTrash", "/old")
        seconds = self.close_200_files("/new")
        print(f"200 closes while deletions are blocked: {seconds:.2f} s", flush=True)
        self.assertEqual([len(self.replica_files(n)) for n in names], [400] * 3, "nothing can have been unlinked")
        self.restart_datanodes("")
        self.until("the old replicas are unlinked", lambda: all(len(self.replica_files(n)) == 200 for n in names))
        self.assertEqual(self.cat("/new/file-0"), generated(2000, 0))

    def test_200_closes_finish_while_heartbeat_answers_are_held(self):
        self.restart_datanodes("datanode.heartbeat.answer=delay(30000)")
        seconds = self.close_200_files("/new")
        print(f"200 closes while heartbeat answers are held: {seconds:.2f} s", flush=True)
        # A lane that waits, waits asleep.
        before = [process.cpu_seconds() for process in self.datanodes()]
        time.sleep(5)
        used = [(process.cpu_seconds() - at) / 5 for process, at in zip(self.datanodes(), before)]
        print(f"idle DataNodes meanwhile use {', '.join(f'{100 * share:.1f} %' for share in used)} of a core", flush=True)
        self.assertLess(max(used), 0.05)


class SlowUnlinks(LanesTest):
    """Each unlink takes 20 ms, as on a disk in trouble."""

    INTERVAL_MS = 500
    KEYS = {**ClusterTest.KEYS, "dfs.heartbeat.interval": f"{INTERVAL_MS}ms"}
    FILES = 400

    def test_heartbeats_and_writes_go_on_and_the_queue_is_seen_to_fall(self):
        files = self.local_files(self.FILES, 1000)
        self.put_all(files, "/old")
        self.restart_datanodes("datanode.deleter.unlink=delay(20)")
        some = files[:100]
        quiet = self.put_all(some, "/quiet")
        self.cairn("dfs", "-rm", "-r", "-skipTrash", "/old")
        self.until("the DataNodes have their orders", lambda: self.total("cairn_reclaim_pending_blocks") > self.FILES)
        lengths, worst = [], 0

        def look():
            lengths.append(self.total("cairn_reclaim_pending_blocks"))
            nonlocal worst
            worst = max(worst, *(process.metrics()["cairn_heartbeat_interval_seconds"] for process in self.datanodes()))

        look()
        busy = self.put_all(some, "/busy")
        look()
        self.assertGreater(lengths[-1], 0, "the writes were to end before the deletion")
        self.until("the queue is empty", lambda: look() or lengths[-1] == 0)
        print(f"100 closes: {quiet:.2f} s quiet, {busy:.2f} s beside the deletion; longest heartbeat interval {worst:.2f} s", flush=True)
        self.assertLess(worst, 2 * self.INTERVAL_MS / 1000)
        self.assertLess(busy, 2 * quiet + 1)
        # Orders may still have come between the first looks; then it only falls.
        most = lengths.index(max(lengths))
        self.assertEqual(lengths[most:], sorted(lengths[most:], reverse=True))


class ExpiredFiles(LanesTest):
    """With default settings, hundreds of small files are gone in seconds, and the disks are as they were."""

    FILES = 500

    def used(self):
        report = json.loads(self.cairn("dfsadmin", "-report", "-json"))
        return [int(node["storages"][0]["used_bytes"]) for node in report["datanodes"]]

    def test_the_backlog_falls_to_nothing_and_the_space_is_back(self):
        files = self.local_files(self.FILES, 4096)
        before = self.used()
        self.put_all(files, "/old")
        self.until("the report counts them", lambda: all(after > then for after, then in zip(self.used(), before)))
        self.cairn("dfs", "-rm", "-r", "-skipTrash", "/old")
        begin = time.monotonic()
        self.until("the space is back", lambda: self.used() == before, 30)
        print(f"{3 * self.FILES} replicas were gone after {time.monotonic() - begin:.1f} s", flush=True)
        self.assertEqual(self.total("cairn_reclaim_pending_blocks"), 0)
        self.assertEqual(sum(len(self.replica_files(n)) for n in self.cluster.processes if n != "namenode"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
