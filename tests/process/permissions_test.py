#!/usr/bin/env python3
"""Users, rights and attributes over the command line, with real daemons: HDFS's words, and what was set outlives kill -9."""

import os
import subprocess
import unittest

from real_cluster import ClusterTest, cluster


class Permissions(ClusterTest):
    """alice and bob are in group staff, mallory is in none; who runs the test runs the NameNode, too."""

    DATANODES = 1
    KEYS = {"dfs.replication": 1, "hadoop.user.group.static.mapping.overrides": "alice=staff;bob=staff;mallory="}

    def run_as(self, user, *arguments, data=b""):
        """Exit code, standard output, standard error."""
        environment = dict(os.environ, HADOOP_USER_NAME=user) if user else dict(os.environ)
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), *arguments]
        done = subprocess.run(command, input=data, capture_output=True, timeout=180, check=False, env=environment)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def must(self, user, *arguments, data=b""):
        code, out, err = self.run_as(user, *arguments, data=data)
        self.assertEqual((code, err), (0, ""), arguments)
        return out

    def denied(self, user, *arguments, words):
        code, _, err = self.run_as(user, *arguments)
        self.assertEqual(code, 1, arguments)
        self.assertIn(words, err)

    def test_each_user_has_what_he_may(self):
        root = self.must("", "-stat", "%u:%g", "/").strip()
        self.assertTrue(root.endswith(":supergroup"), root)
        self.denied("alice", "-mkdir", "/alice",
                    words=f'mkdir: Permission denied: user=alice, access=WRITE, inode="/":{root}:drwxr-xr-x\n')
        self.must("", "-mkdir", "/home", "/tmp")
        self.must("", "-chmod", "1777", "/tmp")
        self.must("", "-mkdir", "/home/alice")
        self.must("", "-chown", "alice:staff", "/home/alice")
        self.must("alice", "-put", "-", "/home/alice/f", data=b"secret")
        self.must("alice", "-chmod", "640", "/home/alice/f")
        self.assertEqual(self.must("bob", "-cat", "/home/alice/f"), "secret")
        self.denied("mallory", "-cat", "/home/alice/f",
                    words='cat: Permission denied: user=mallory, access=READ, inode="/home/alice/f":alice:staff:-rw-r-----\n')
        self.denied("mallory", "-rm", "/home/alice/f", words='access=WRITE, inode="/home/alice":alice:staff:drwxr-xr-x')
        self.assertEqual(self.run_as("mallory", "-test", "-r", "/home/alice/f"), (1, "", ""))
        self.assertEqual(self.run_as("bob", "-test", "-r", "/home/alice/f"), (0, "", ""))
        self.must("alice", "-touchz", "/tmp/mine")
        self.denied("bob", "-rm", "/tmp/mine", words="rm: Permission denied by sticky bit: user=bob")
        self.denied("bob", "-chmod", "777", "/tmp/mine",
                    words="chmod: changing permissions of '/tmp/mine': Permission denied. user=bob is not the owner of inode=/tmp/mine\n")
        self.denied("alice", "-chown", "bob", "/tmp/mine",
                    words="chown: changing ownership of '/tmp/mine': User alice is not a super user "
                          "(non-super user cannot change owner).\n")
        self.must("alice", "-chgrp", "staff", "/tmp/mine")
        self.must("alice", "-setfattr", "-n", "user.origin", "-v", "job 7", "/tmp/mine")
        self.must("alice", "-touch", "-m", "-t", "20230102:030405", "/tmp/mine")
        attributes = self.must("alice", "-stat", "%a %A %u %g %Y", "/tmp/mine")

        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.assertEqual(self.must("alice", "-stat", "%a %A %u %g %Y", "/tmp/mine"), attributes)
        self.assertTrue(attributes.startswith("644 rw-r--r-- alice staff 1672"), attributes)
        self.assertEqual(self.must("alice", "-getfattr", "-d", "/tmp/mine"), '# file: /tmp/mine\nuser.origin="job 7"\n')
        self.must("", "-rm", "-r", "/home", "/tmp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
