#!/usr/bin/env python3
"""deploy/dev/cluster.py with daemons that only pretend: starting, stopping, ports in use, stale runs, and never a stranger's process."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy" / "dev"))

import cluster  # noqa: E402  pylint: disable=wrong-import-position
import house  # noqa: E402  pylint: disable=wrong-import-position

# Answers /readyz on the HTTP port of its configuration; what it should do wrong is in the environment.
DAEMON = textwrap.dedent(f"""\
    #!{sys.executable}
    import http.server, os, pathlib, signal, sys
    config = dict(line.split(": ", 1) for line in open(sys.argv[2]).read().splitlines())
    config = {{key: value.strip('"') for key, value in config.items()}}
    if "--format" in sys.argv:
        pathlib.Path(config["dfs.namenode.name.dir"]).mkdir(parents=True)
        sys.exit(0)
    if os.environ.get("FAKE") == "die" and "datanode2" in sys.argv[2]:
        print("cannot lock the disk")
        sys.exit(1)
    if os.environ.get("FAKE") == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    address = config.get("dfs.datanode.http.address") or config["dfs.namenode.http-address"]
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/readyz" else 404)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    print("up", flush=True)
    http.server.HTTPServer(("127.0.0.1", int(address.rsplit(":", 1)[1])), Handler).serve_forever()
    """)


class ClusterScript(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="cairn-cluster-test.")
        folder = pathlib.Path(self.scratch.name)
        daemon = folder / "daemon"
        daemon.write_text(DAEMON, encoding="utf-8")
        daemon.chmod(0o755)
        self.saved = (cluster.RUN_FOLDER, cluster.NAMENODE, cluster.DATANODE)
        cluster.RUN_FOLDER, cluster.NAMENODE, cluster.DATANODE = folder / "run", daemon, daemon
        self.addCleanup(self.restore)

    def restore(self):
        os.environ.pop("FAKE", None)
        cluster.stop_all()
        cluster.RUN_FOLDER, cluster.NAMENODE, cluster.DATANODE = self.saved
        self.scratch.cleanup()

    def test_starts_formats_and_stops_everything(self):
        running = cluster.Cluster.start("a", datanodes=2)
        self.assertEqual(["namenode", "datanode1", "datanode2"], list(running.processes))
        self.assertTrue((running.folder / "namenode" / "name").is_dir())
        self.assertTrue(all(p.alive() for p in running.processes.values()))
        self.assertEqual(len({p.http_port for p in running.processes.values()}), 3)
        self.assertEqual(3, cluster.stop_all())
        self.assertFalse(any(p.alive() for p in running.processes.values()))
        self.assertEqual(0, cluster.stop_all())

    def test_a_stale_run_is_stopped_and_its_state_removed(self):
        first = cluster.Cluster.start("a", datanodes=1)
        (first.folder / "namenode" / "name" / "old").write_text("x", encoding="utf-8")
        second = cluster.Cluster.start("a", datanodes=1)
        self.assertFalse(first.processes["namenode"].alive())
        self.assertTrue(second.processes["namenode"].alive())
        self.assertFalse((second.folder / "namenode" / "name" / "old").exists())

    def test_two_clusters_stand_side_by_side(self):
        a = cluster.Cluster.start("a", datanodes=1)
        b = cluster.Cluster.start("b", datanodes=1)
        self.assertNotEqual(a.ports, b.ports)
        self.assertEqual(4, cluster.stop_all())

    def test_a_port_in_use_is_replaced(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            taken = set()
            self.assertNotEqual(port, cluster.free_port(port, taken))
            self.assertEqual(1, len(taken))

    def test_stopping_spares_a_stranger_with_an_old_pid(self):
        running = cluster.Cluster.start("a", datanodes=1)
        state_file = running.folder / "cluster.json"
        stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL)
        try:
            running.stop()
            state = json.loads(state_file.read_text(encoding="utf-8"))
            state["processes"][0]["pid"] = stranger.pid
            state_file.write_text(json.dumps(state), encoding="utf-8")
            self.assertEqual(0, cluster.stop_all())
            self.assertIsNone(stranger.poll())
        finally:
            stranger.kill()
            stranger.wait()

    def test_a_daemon_that_ends_while_starting_is_named_with_its_log_and_nothing_is_left(self):
        os.environ["FAKE"] = "die"
        with self.assertRaisesRegex(cluster.ClusterError, "(?s)datanode2 ended while starting.*cannot lock the disk"):
            cluster.Cluster.start("a", datanodes=2)
        self.assertEqual(0, cluster.stop_all())

    def test_a_daemon_deaf_to_sigterm_is_killed(self):
        os.environ["FAKE"] = "deaf"
        running = cluster.Cluster.start("a", datanodes=1)
        process = running.processes["datanode1"]
        self.assertTrue(process.stop(seconds=0.3))
        self.assertFalse(process.alive())
        running.kill("namenode")

    def test_a_killed_datanode_comes_back_on_its_port(self):
        running = cluster.Cluster.start("a", datanodes=1)
        old = running.processes["datanode1"].pid
        running.kill("datanode1")
        self.assertFalse(running.processes["datanode1"].alive())
        running.start_process("datanode1")
        running.wait_ready("datanode1")
        self.assertNotEqual(old, running.processes["datanode1"].pid)
        self.assertEqual(running.processes["datanode1"].pid, cluster.Cluster.load("a").processes["datanode1"].pid)

    def test_a_missing_binary_is_said(self):
        cluster.DATANODE = house.ROOT / "build" / "nowhere" / "cairn-datanode"
        with self.assertRaisesRegex(cluster.ClusterError, "build/nowhere/cairn-datanode is not there"):
            cluster.Cluster.start("a")


class Counting(unittest.TestCase):
    """What ./dev test makes of ctest's words is in its last line, so it has to be right."""

    def failures_of(self, text):
        read, write = os.pipe()
        saved = os.dup(1)
        os.dup2(write, 1)
        try:
            house.print_failures(text)
        finally:
            os.dup2(saved, 1)
            os.close(write)
        return os.read(read, 100000).decode()

    def test_the_output_of_failed_tests_is_shown_and_that_of_others_is_not(self):
        text = ("1/2 Test #1: A.Fine ....   Passed    0.01 sec\nquiet\n2/2 Test #2: A.Broken ....***Failed    0.02 sec\nwhy it broke\n"
                "\n50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - A.Broken (Failed)\n")
        shown = self.failures_of(text)
        self.assertIn("why it broke", shown)
        self.assertIn("2 - A.Broken (Failed)", shown)
        self.assertNotIn("quiet", shown)


if __name__ == "__main__":
    unittest.main(verbosity=1, warnings="ignore")  # Daemons outlive the objects that started them, on purpose.
