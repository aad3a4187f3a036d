"""Stock HDFS clients on a cluster of real processes: what they write our client reads, what ours writes they read, and both see the same
names. The clients come from Maven's registry and from Debian's packages, by name, into caches outside this checkout."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "process"))

from real_cluster import BLOCK, ClusterTest, generated  # noqa: E402  pylint: disable=wrong-import-position

HERE = ROOT / "tests" / "hdfs"
SIZES = (0, 1, 511, 512, 513, 65537, BLOCK, BLOCK + 1, 3 * BLOCK + 777)


def class_path():
    """Of the Java client. Three tries; then the test fails and says that the registry could not be reached."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "classpath"
        command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath", f"-Dmdep.outputFile={output}"]
        for _ in range(3):
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      timeout=600, check=False)
            except FileNotFoundError as error:
                raise AssertionError("mvn is not installed: it fetches the Java client that is the judge here") from error
            if done.returncode == 0 and output.exists():
                return output.read_text(encoding="utf-8").strip()
    raise AssertionError("the Java client could not be fetched from Maven's registry, in three tries:\n" + done.stdout[-2000:])


def go_client():
    """Debian's hdfs-cli: unpacked, not installed. Three tries, as above."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cairn" / "hdfs-cli"
    program = folder / "usr" / "bin" / "hdfs"
    for _ in range(3):
        if program.exists():
            return str(program)
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run("apt-get download hdfs-cli && dpkg -x hdfs-cli_*.deb .", shell=True, cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    if program.exists():
        return str(program)
    raise AssertionError("the Go client could not be fetched from Debian's packages, in three tries:\n" + done.stdout[-2000:])


class JavaShell:
    """Hadoop's shell in one virtual machine, on one cluster."""

    def __init__(self, jars, keys):
        self.process = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", jars, str(HERE / "ShellLoop.java"), *[f"{key}={value}" for key, value in keys.items()]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def run(self, *words):
        self.process.stdin.write(("\t".join(words) + "\n").encode())
        self.process.stdin.flush()
        head = self.process.stdout.readline()
        if not head:
            raise AssertionError(f"the Java client ended at {words}")
        code, output, errors = (int(part) for part in head.split())
        return code, self.process.stdout.read(output), self.process.stdout.read(errors).decode(errors="replace")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class HadoopShell(ClusterTest):
    """FsShell of hadoop-client beside `cairn dfs`."""

    @classmethod
    def setUpClass(cls):
        cls.jars = class_path()

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", str(self.folder)], check=False))
        self.start_java()

    def start_java(self):
        self.java = JavaShell(self.jars, {"fs.defaultFS": self.cluster.address("hdfs"), "dfs.blocksize": str(BLOCK)})
        self.addCleanup(self.java.close)

    def shell(self, *words, code=0):
        """The output of a command that ends so; of one that fails what it says."""
        ended, output, errors = self.java.run(*words)
        self.assertEqual(ended, code, f"{' '.join(words)}\n{errors}")
        return output if code == 0 else errors

    def local(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def names(self, path):
        """What both list below `path`: the same, or the test fails."""
        listed = [line.split()[-1] for line in self.shell("-ls", "-R", path).decode().splitlines() if line[:1] in "d-"]
        ours = [line.split()[-1] for line in self.cairn("dfs", "-ls", "-R", path).decode().splitlines() if line[:1] in "d-"]
        self.assertEqual(listed, ours)
        return listed

    def test_files_of_every_size_are_the_same_both_ways(self):
        self.shell("-mkdir", "-p", "/java/deep/er")
        for size in SIZES:
            data = generated(size, size)
            name = f"f{size}"
            with self.subTest(size=size):
                self.shell("-put", self.local(name, data), f"/java/{name}")
                self.assertEqual(self.cat(f"/java/{name}"), data)
                self.put(f"/ours/{name}", data)
                self.assertEqual(self.shell("-cat", f"/ours/{name}"), data)
                self.shell("-get", f"/java/{name}", str(self.folder / f"{name}.back"))
                self.assertEqual((self.folder / f"{name}.back").read_bytes(), data)
        self.assertEqual(len(self.names("/")), 2 * len(SIZES) + 4)
        total = sum(SIZES)
        self.assertEqual(self.shell("-count", "/java").split()[:3], [b"3", b"%d" % len(SIZES), b"%d" % total])
        self.assertEqual(self.shell("-du", "-s", "/java").split()[:2], [b"%d" % total, b"%d" % (3 * total)])
        self.assertEqual(self.shell("-tail", f"/java/f{65537}"), generated(65537, 65537)[-1024:])

    def test_names_move_and_go_as_on_hdfs(self):
        self.shell("-mkdir", "-p", "/a/b", "/c")
        self.shell("-touchz", "/a/b/empty")
        self.shell("-put", self.local("x", b"x"), "/a/b/x")
        self.assertIn("File exists", self.shell("-mkdir", "/a", code=1))
        self.assertIn("No such file or directory", self.shell("-mkdir", "/no/parent", code=1))
        self.assertIn("No such file or directory", self.shell("-cat", "/none", code=1))
        self.assertIn("File exists", self.shell("-put", self.local("y", b"y"), "/a/b/x", code=1))
        self.shell("-put", "-f", self.local("y", b"y"), "/a/b/x")
        self.assertEqual(self.cat("/a/b/x"), b"y")
        self.shell("-mv", "/a/b", "/c")  # Into it.
        self.shell("-mv", "/c/b/x", "/c/b/z")
        self.assertEqual(self.names("/"), ["/a", "/c", "/c/b", "/c/b/empty", "/c/b/z"])
        self.assertEqual(self.shell("-test", "-d", "/c/b"), b"")
        self.shell("-test", "-e", "/a/b", code=1)
        self.assertIn("Directory is not empty", self.shell("-rmdir", "/c", code=1))
        self.shell("-rmdir", "/a")
        self.shell("-rm", "-r", "/c/b")
        self.assertEqual(self.names("/"), ["/c"])

    def test_attributes_are_those_that_were_set(self):
        self.shell("-put", self.local("x", b"x" * 100), "/x")
        self.shell("-chmod", "640", "/x")
        self.shell("-chown", "alice:people", "/x")
        self.shell("-setrep", "2", "/x")
        shown = self.shell("-stat", "%a %u %g %r %b %o", "/x").decode().split()
        self.assertEqual(shown, ["640", "alice", "people", "2", "100", str(BLOCK)])
        self.shell("-setfattr", "-n", "user.colour", "-v", "red", "/x")
        self.assertIn(b'user.colour="red"', self.shell("-getfattr", "-d", "/x"))
        self.shell("-setfattr", "-x", "user.colour", "/x")
        self.assertNotIn(b"colour", self.shell("-getfattr", "-d", "/x"))
        self.assertIn(b"user::rw-", self.shell("-getfacl", "/x"))
        fields = self.shell("-df", "/").decode().splitlines()[1].split()
        self.assertGreater(int(fields[1]), 0)

    def test_appends_go_on_where_the_file_ended(self):
        first, second = generated(700_001, 1), generated(BLOCK, 2)
        self.shell("-put", self.local("first", first), "/log")
        self.shell("-appendToFile", self.local("second", second), "/log")
        self.assertEqual(self.cat("/log"), first + second)
        self.assertEqual(self.shell("-cat", "/log"), first + second)
        self.shell("-appendToFile", self.local("new", b"new"), "/new")
        self.assertEqual(self.cat("/new"), b"new")

    def test_a_file_is_cut_where_it_was_told(self):
        data = generated(BLOCK + 1000, 4)
        self.shell("-put", self.local("x", data), "/x")
        self.shell("-truncate", "-w", "1000", "/x")  # Inside a block, which is recovered first.
        self.assertEqual(self.cat("/x"), data[:1000])
        self.shell("-appendToFile", self.local("y", b"more"), "/x")
        self.assertEqual(self.shell("-cat", "/x"), data[:1000] + b"more")
        self.assertIn("Cairn has no snapshots", self.shell("-createSnapshot", "/", code=1))

    def test_a_writer_survives_the_loss_of_a_datanode(self):
        data = generated(8 * BLOCK + 5, 9)
        self.shell("-put", self.local("before", data), "/before")
        self.cluster.kill("datanode2")
        self.shell("-put", self.local("after", data), "/after")
        self.assertEqual(self.cat("/after"), data)
        self.assertEqual(self.shell("-cat", "/before"), data)

    def test_the_namenode_comes_back_with_what_java_wrote(self):
        data = generated(BLOCK + 1, 3)
        self.shell("-put", self.local("x", data), "/x")
        self.cluster.kill("namenode")
        self.cluster.start_process("namenode")
        self.cluster.wait_ready("namenode")
        self.until("its DataNodes are back", lambda: re.search(rb"Live datanodes \(3\)", self.cairn("dfsadmin", "-report")))
        # A client without high availability tries once, on the connection that it had: on HDFS, too.
        self.start_java()
        self.assertEqual(self.shell("-cat", "/x"), data)


class GoClient(ClusterTest):
    """Debian's hdfs-cli, in Go, beside `cairn dfs`."""

    @classmethod
    def setUpClass(cls):
        cls.program = go_client()

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", str(self.folder)], check=False))

    def go(self, *words, code=0):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HADOOP")}
        environment["HADOOP_NAMENODE"] = self.cluster.address("hdfs").removeprefix("hdfs://")
        done = subprocess.run([self.program, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, code, f"{' '.join(words)}\n{done.stderr.decode(errors='replace')}")
        return done.stdout if code == 0 else done.stderr.decode(errors="replace")

    def test_files_of_every_size_are_the_same_both_ways(self):
        self.go("mkdir", "-p", "/go/deep")
        for size in SIZES:
            data = generated(size, size)
            with self.subTest(size=size):
                local = self.folder / f"f{size}"
                local.write_bytes(data)
                self.go("put", str(local), f"/go/f{size}")
                self.assertEqual(self.cat(f"/go/f{size}"), data)
                self.put(f"/ours/f{size}", data)
                self.assertEqual(self.go("cat", f"/ours/f{size}"), data)

    def test_names_move_and_go(self):
        self.put("/a/x", b"x")
        self.go("mkdir", "/b")
        self.go("mv", "/a/x", "/b/y")
        self.assertEqual(self.go("ls", "/b").split(), [b"y"])
        self.assertIn("file does not exist", self.go("ls", "/a/x", code=1))
        self.go("chmod", "600", "/b/y")
        self.assertTrue(self.go("ls", "-l", "/b/y").startswith(b"-rw-------"))
        self.go("rm", "-r", "/b")
        self.assertIn("file is a directory", self.go("rm", "/a", code=1))
        self.go("rm", "-r", "/a")
        self.assertEqual(self.go("ls", "/"), b"")


if __name__ == "__main__":
    os.environ.setdefault("CAIRN_PRESET", "release")
    unittest.main(verbosity=2)
