#!/usr/bin/env python3
"""What docs/operations.md promises, on real daemons: backups, offline tools, the audit log, limits that change without a restart.

Run by ctest; needs the release build."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
