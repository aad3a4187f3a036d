#!/usr/bin/env python3
"""What docs/operations.md promises, on real daemons: backups, offline tools, the audit log, limits that change without a restart.

Run by ctest; needs the release build."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from real_cluster import ClusterTest, cluster  # noqa: E402  pylint: disable=wrong-import-position


class Operations(ClusterTest):
    """One DataNode is enough."""

    DATANODES = 1

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.folder))
        self.config = self.cluster.folder / "namenode" / "cairn.yaml"

    def offline(self, *arguments, code=0):
        done = subprocess.run([str(cluster.CAIRN), "namespace", *map(str, arguments)], capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return (done.stdout + done.stderr).decode(errors="replace")

    def reconfig(self, action, code=0):
        address = self.cluster.address("cairn").removeprefix("cairn://")
        out = self.cairn("dfsadmin", "-reconfig", "namenode", address, action, code=code)
        return out if isinstance(out, str) else out.decode()

    def set_keys(self, **changed):
        """Rewrites the NameNode's configuration; None takes a key out."""
        lines = [line for line in self.config.read_text(encoding="utf-8").splitlines() if line.split(":")[0] not in changed]
        lines += [f"{key}: {json.dumps(value)}" for key, value in changed.items() if value is not None]
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def test_a_backup_is_made_downloaded_and_checked_while_the_cluster_works(self):
        self.put("/a/file", b"content")
        saved = self.cairn("dfsadmin", "-saveNamespace").decode()
        self.assertIn("Save namespace successful: ", saved)
        self.put("/a/later", b"content")
        self.cairn("dfsadmin", "-fetchImage", str(self.folder))
        copies = list(self.folder.iterdir())
        self.assertEqual(len(copies), 1)
        self.assertIn("sound: 2 directories, 1 files, 1 blocks", self.offline("check", copies[0]))
        rows = [json.loads(line) for line in self.offline("dump", copies[0]).splitlines()]
        names = [row["key"] for row in rows if row["family"] == "inode"]
        self.assertTrue(any('"file"' in name for name in names), names)
        self.assertFalse(any('"later"' in name for name in names), names)
        name_directory = self.cluster.folder / "namenode" / "name"
        self.assertIn("in use by a NameNode", self.offline("check", name_directory, code=2))
        self.cluster.processes["namenode"].stop()
        self.assertIn("sound: 2 directories, 2 files, 2 blocks", self.offline("check", name_directory))

    def test_a_backup_is_restored_by_hand_and_nothing_newer_is_deleted_before_that_is_confirmed(self):
        self.put("/a/kept", b"in the backup")
        self.cairn("dfsadmin", "-saveNamespace")
        self.cairn("dfsadmin", "-fetchImage", str(self.folder))
        backup = next(self.folder.iterdir())
        self.put("/a/later", b"after the backup")
        replicas = len(self.replica_files("datanode1"))
        self.assertEqual(replicas, 2)
        # As docs/operations.md has it.
        self.cluster.processes["namenode"].stop()
        name_directory = self.cluster.folder / "namenode" / "name"
        away = self.cluster.folder / "namenode" / "away"
        name_directory.rename(away)
        subprocess.run(["cp", "-a", str(backup), str(name_directory)], check=True)
        self.cluster.start_process("namenode")
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)
        self.assertIn("restored checkpoint", self.cluster.processes["namenode"].log.read_text(encoding="utf-8", errors="replace"))
        self.until("the DataNode is back", lambda: self.metric('cairn_datanodes{state="live"}') == 1)
        self.assertEqual(self.cat("/a/kept"), b"in the backup")
        self.assertIn("No such file", self.cairn("dfs", "-cat", "/a/later", code=1))
        self.until("the NameNode hears that it is a backup", lambda: self.metric("cairn_unknown_replicas_kept") == 1)
        self.until("the unknown block is counted", lambda: self.metric('cairn_blocks{state="quarantined"}') == 1)
        # Neither time nor a restart deletes it; new files get ids of their own.
        self.put("/a/new", b"after the restore")
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.until("the DataNode is back", lambda: self.metric('cairn_datanodes{state="live"}') == 1)
        time.sleep(5)
        self.assertEqual(self.metric("cairn_unknown_replicas_kept"), 1)
        self.assertEqual(len(self.replica_files("datanode1")), 3)
        # The old directory still works: what was written later is all there. Then back to the backup for good.
        self.assertIn("sound: 2 directories, 2 files, 2 blocks", self.offline("check", away))
        confirmed = self.cairn("dfsadmin", "-confirmRollback").decode()
        self.assertRegex(confirmed, r"^Confirmed: 1 blocks that the namespace does not know are deleted from now on")
        self.until("the unknown replica is gone", lambda: len(self.replica_files("datanode1")) == 2)
        self.assertEqual(self.metric("cairn_unknown_replicas_kept"), 0)
        self.assertEqual(self.cat("/a/kept"), b"in the backup")
        self.assertEqual(self.cat("/a/new"), b"after the restore")
        self.assertIn("Nothing to confirm", self.cairn("dfsadmin", "-confirmRollback").decode())

    def test_a_stopped_namespace_is_compacted_with_its_own_options(self):
        self.cairn("dfs", "-mkdir", *(f"/d{i}" for i in range(200)))
        name_directory = self.cluster.folder / "namenode" / "name"
        self.assertIn("is in use: stop its NameNode first", self.offline("compact", name_directory, code=2))
        self.cluster.processes["namenode"].stop()
        said = self.offline("compact", name_directory)
        self.assertRegex(said, r"compacted: \d+ bytes, \d+ before; 0 options differ \(OPTIONS-\d+, OPTIONS-\d+ before\)")
        self.assertIn("sound: 201 directories, 0 files", self.offline("check", name_directory))
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.cairn("dfs", "-test", "-d", "/d199")

    def test_files_that_nobody_closed_are_listed(self):
        self.put("/job/good", b"content")
        self.assertIn(b"0 files of 0 bytes that no writer has closed, among 1 files",
                      self.cairn("dfsadmin", "orphans", "/job", "--older", "1m"))
        self.assertIn("orphans: `/none': ", self.cairn("dfsadmin", "-orphans", "-older", "1m", "/none", code=1))
        denied = subprocess.run([str(cluster.CAIRN), "dfsadmin", "-fs", self.cluster.address("cairn"), "-orphans", "-older", "1m", "/job"],
                                capture_output=True, timeout=60, check=False, env=dict(os.environ, HADOOP_USER_NAME="mallory"))
        self.assertEqual(denied.returncode, 1)
        self.assertIn(b"Access denied for user mallory. Superuser privilege is required", denied.stderr)

    def test_limits_change_by_reconfig_and_by_sighup(self):
        key = "dfs.namenode.fs-limits.max-component-length"
        self.cairn("dfs", "-mkdir", "/twelve-bytes")
        self.assertIn(key, self.reconfig("properties"))
        self.assertIn("no task was found", self.reconfig("status"))
        self.set_keys(**{key: 10})
        self.assertIn("Started reconfiguration task", self.reconfig("start"))
        self.assertIn(f"SUCCESS: Changed property {key}\n\tFrom: \"255\"\n\tTo: \"10\"", self.reconfig("status"))
        self.cairn("dfs", "-mkdir", "/eleven-byte", code=1)
        self.set_keys(**{key: 11, "dfs.replicaton": 3})
        self.assertIn("unknown key dfs.replicaton", self.reconfig("start", code=1))
        self.cairn("dfs", "-mkdir", "/eleven-byte", code=1)
        self.set_keys(**{key: None, "dfs.replicaton": None})
        self.cluster.processes["namenode"].signal(signal.SIGHUP)
        self.until("the limit is gone", lambda: subprocess.run(
            [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-mkdir", "/eleven-byte"], capture_output=True, timeout=60,
            check=False).returncode == 0)


class Audited(ClusterTest):
    """With an audit log."""

    DATANODES = 1
    KEYS = {**ClusterTest.KEYS, "cairn.namenode.audit.file": "audit.log"}  # Relative: in the NameNode's own folder.

    def test_each_operation_is_a_line_with_user_and_path(self):
        self.put("/a/file", b"content")
        self.cairn("dfs", "-mv", "/a/file", "/a/moved")
        self.cairn("dfs", "-stat", "/none", code=1)
        log = self.cluster.folder / "namenode" / "audit.log"
        self.until("the lines are written", lambda: log.exists() and "src=/none" in log.read_text(encoding="utf-8"), 20)
        lines = log.read_text(encoding="utf-8").splitlines()
        create = [line for line in lines if "\tcmd=create\t" in line]
        self.assertEqual(len(create), 1, lines)
        self.assertRegex(create[0], r"^\S+ \S+ INFO FSNamesystem\.audit: allowed=true\tugi=\S+ \(auth:SIMPLE\)\t"
                                    r"ip=/127\.0\.0\.1\tcmd=create\tsrc=/a/file\S*\tdst=null\tperm=\S+:\S+:rw-r--r--\tproto=rpc$")
        self.assertTrue(any("\tcmd=rename\tsrc=/a/file\tdst=/a/moved\t" in line for line in lines), lines)
        self.assertTrue(any("\tsrc=/none\t" in line and line.endswith("\terror=kNotFound") for line in lines), lines)


class RotatedAudit(ClusterTest):
    """With an audit log of small files."""

    DATANODES = 1
    FILE_BYTES = 64 << 10
    KEYS = {**ClusterTest.KEYS, "cairn.namenode.audit.file": "audit.log", "cairn.namenode.audit.file.size": FILE_BYTES,
            "cairn.namenode.audit.file.count": 20}

    def lines(self):
        """Of all files, the oldest first."""
        folder = self.cluster.folder / "namenode"
        files = sorted(folder.glob("audit*"), key=lambda path: int((re.findall(r"\d+", path.name) or ["0"])[0]), reverse=True)
        for path in files:
            self.assertLessEqual(path.stat().st_size, self.FILE_BYTES + 1024, path.name)
        return files, [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]

    def test_each_operation_is_one_line_in_files_that_rotate_also_if_it_is_denied(self):
        self.cairn("dfs", "-mkdir", "/private")
        self.cairn("dfs", "-chmod", "700", "/private")
        self.cairn("dfs", "-mkdir", *(f"/private/{i:04}" for i in range(1200)))
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-rm", "-r", "-skipTrash", "/private/0007"]
        denied = subprocess.run(command, capture_output=True, timeout=60, check=False, env=dict(os.environ, HADOOP_USER_NAME="mallory"))
        self.assertEqual(denied.returncode, 1)
        self.cairn("dfs", "-rm", "-r", "-skipTrash", "/private/0007")
        self.until("all lines are written", lambda: any("allowed=true" in line and "cmd=delete\tsrc=/private/0007\t" in line
                                                        for line in self.lines()[1]), 20)
        files, lines = self.lines()
        self.assertGreater(len(files), 2)
        made = [re.search(r"src=(\S+)", line).group(1) for line in lines if "\tcmd=mkdirs\tsrc=/private/" in line]
        self.assertEqual(made, [f"/private/{i:04}" for i in range(1200)])  # Each once, in order.
        refused = [line for line in lines if "allowed=false" in line]
        self.assertTrue(refused)
        for line in refused:
            self.assertRegex(line, r"allowed=false\tugi=mallory \(auth:SIMPLE\)\tip=/127\.0\.0\.1\tcmd=\w+\tsrc=/private/0007\t")
        self.assertEqual(len([line for line in lines if "cmd=delete\tsrc=/private/0007\t" in line and "allowed=true" in line]), 1)
        form = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO FSNamesystem\.audit: allowed=")
        self.assertTrue(all(form.match(line) for line in lines))


if __name__ == "__main__":
    unittest.main(verbosity=2)
