#!/usr/bin/env python3
"""What the command line says of the commonest mistakes, with real daemons: HDFS's lines, whole, and its exit codes."""

import subprocess
import unittest

from real_cluster import ClusterTest, cluster


class CommandWords(ClusterTest):
    DATANODES = 1
    KEYS = {"dfs.replication": 1, "dfs.blocksize": 1 << 20}

    def says(self, group, arguments, words, code=1):
        """The command fails with just these lines."""
        command = [str(cluster.CAIRN), group, "-fs", self.cluster.address("cairn"), *arguments]
        done = subprocess.run(command, input=b"x", capture_output=True, timeout=180, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()), (code, words), arguments)

    def dfs(self, *arguments, words, code=1):
        self.says("dfs", arguments, words, code)

    def test_lines(self):
        self.cairn("dfs", "-mkdir", "-p", "/d/e", "/full/x")
        self.put("/d/f", b"data")
        self.put("/g", b"data")
        missing = "No such file or directory\n"

        self.dfs("-ls", "/no", words="ls: `/no': " + missing)
        self.dfs("-ls", "/no/where", words="ls: `/no/where': " + missing)
        self.dfs("-ls", "/d/*.none", words="ls: `/d/*.none': " + missing)
        self.dfs("-cat", "/no", words="cat: `/no': " + missing)
        self.dfs("-cat", "/d", words="cat: `/d': Is a directory\n")
        self.dfs("-stat", "/no", words="stat: `/no': " + missing)
        self.dfs("-du", "/no", words="du: `/no': " + missing)
        self.dfs("-count", "/no", words="count: `/no': " + missing)
        self.dfs("-get", "/no", "/tmp/never", words="get: `/no': " + missing)

        self.dfs("-mkdir", "/d", words="mkdir: `/d': File exists\n")
        self.dfs("-mkdir", "/d/f", words="mkdir: `/d/f': Is not a directory\n")
        self.dfs("-mkdir", "/no/d", words="mkdir: `/no': " + missing)
        self.dfs("-mkdir", "-p", "/d/f/x", words="mkdir: `/d/f/x': Is not a directory\n")
        self.dfs("-mkdir", "/.reserved", words="mkdir: `/.reserved': \".reserved\" is a reserved name and cannot be created\n")
        long_name = "/" + "n" * 256
        self.dfs("-mkdir", long_name, words=f"mkdir: the maximum path component name limit is exceeded: {long_name[:256]}... has 256 bytes "
                                            "of UTF-8 (limit 255, raised by dfs.namenode.fs-limits.max-component-length)\n")

        self.dfs("-put", "-", "/d/f", words="put: `/d/f': File exists\n")
        self.dfs("-put", "-", "/no/f", words="put: `/no/f': " + missing)
        self.dfs("-put", "/no/local", "/d/n", words="put: `/no/local': " + missing)
        self.dfs("-touchz", "/d/f", words="touchz: `/d/f': Not a zero-length file\n")
        self.dfs("-touchz", "/d", words="touchz: `/d': Is a directory\n")

        self.dfs("-mv", "/no", "/x", words="mv: `/no': " + missing)
        self.dfs("-mv", "/g", "/no/x", words="mv: `/no/x': " + missing)
        self.dfs("-mv", "/g", "/d/f", words="mv: `/d/f': File exists\n")
        self.dfs("-mv", "/d", "/d/e", words="mv: `/d': Rename destination /d/e/d is a directory or file under source /d\n")

        self.dfs("-rm", "/no", words="rm: `/no': " + missing)
        self.dfs("-rm", "/d", words="rm: `/d': Is a directory\n")
        self.dfs("-rm", "-r", "/", words="rm: `/': the root cannot be deleted\n")
        self.cairn("dfs", "-rm", "-f", "/no")

        self.dfs("-setrep", "600", "/g", words="setrep: `/g': Requested replication factor of 600 exceeds maximum of 512 for /g (set by "
                                               "dfs.replication.max)\n")
        self.dfs("-truncate", "100", "/g", words="truncate: `/g': Cannot truncate to a larger file size. Current size: 4, truncate size: "
                                                 "100.\n")
        self.dfs("-appendToFile", "-", "/d", words="appendToFile: `/d': Is a directory\n")
        self.dfs("-chmod", "755", "/no", words="chmod: `/no': " + missing)
        self.dfs("-chown", "ada", "/no", words="chown: `/no': " + missing)
        self.dfs("-setfattr", "-x", "user.a", "/g", words="setfattr: `/g': No matching attributes found for remove operation\n")
        self.dfs("-getfattr", "-n", "user.a", "/g", words="getfattr: `/g': At least one of the attributes provided was not found.\n")

        self.says("dfsadmin", ["-setQuota", "1", "/no"], "setQuota: Directory does not exist: /no\n")
        self.says("dfsadmin", ["-setQuota", "1", "/g"], "setQuota: /g: Is not a directory\n")
        self.cairn("dfsadmin", "-setQuota", "2", "/full")
        self.dfs("-mkdir", "/full/y",
                 words="mkdir: The NameSpace quota (directories and files) of directory /full is exceeded: quota=2 file count=3\n")
        self.cairn("dfsadmin", "-setSpaceQuota", "1000", "/d")
        self.dfs("-put", "-", "/d/n",
                 words="put: The DiskSpace quota of /d is exceeded: quota = 1000 B = 1000 B but diskspace consumed = 1048580 B = 1 MB\n")

        self.dfs("-nothing", words=self.usage("-nothing: Unknown command\n"), code=255)

    def usage(self, first):
        command = [str(cluster.CAIRN), "dfs", "-fs", self.cluster.address("cairn"), "-help"]
        shown = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout.decode()
        return first + shown


if __name__ == "__main__":
    unittest.main(verbosity=2)
