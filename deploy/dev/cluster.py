"""A cluster of real processes on this machine: 1 NameNode, some DataNodes, their state in build/run/<name>/.

build/run/<name>/cluster.json lists every process with its pid and start time; both together name one process for ever, so that
stopping never hits a stranger that got an old pid. Ports are the usual ones when they are free, else any."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import house

RUN_FOLDER = house.ROOT / "build" / "run"
BUILD = house.build_folder(os.environ.get("CAIRN_PRESET", "release"))  # Of the daemons and of the CLI.
NAMENODE = BUILD / "namenode" / "cairn-namenode"
DATANODE = BUILD / "datanode" / "cairn-datanode"
CAIRN = BUILD / "client" / "cairn"


class ClusterError(Exception):
    """Something did not come up; the text says what, and where its log is."""


def start_time_of(pid):
    """Clock ticks after boot at which `pid` started, or None if there is no such process (a zombie counts as none)."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()  # The name before may hold blanks and parentheses.
    # One that was killed is a zombie as soon as its first thread has ended; until the last has, it holds its files and their locks.
    ended = fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1)
    return None if ended else int(fields[19])


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def free_port(wanted, taken):
    """`wanted` if nobody listens there, else some free port; never one of `taken`."""
    for candidate in ([wanted] if wanted not in taken else []) + [0] * 20:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            port = probe.getsockname()[1]
        if port not in taken:
            taken.add(port)
            return port
    raise ClusterError(f"no free port instead of {wanted}")


class Process:
    """One daemon: how it is started, and the process that runs now, if one does."""

    def __init__(self, name, command, log, http_port, pid=None, start_time=None):
        self.name = name
        self.command = command
        self.log = log
        self.http_port = http_port
        self.pid = pid
        self.start_time = start_time
        self.child = None  # Only while its parent is this Python process.

    def alive(self):
        if self.child is not None:
            self.child.poll()  # Reaps it.
        return self.pid is not None and start_time_of(self.pid) == self.start_time

    def cpu_seconds(self):
        """User and system seconds so far."""
        text = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        fields = text[text.rindex(")") + 2:].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        """What its /metrics says now, by series."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return {name: float(value) for name, value in re.findall(r"^(cairn_\S+) (\S+)$", text, re.MULTILINE)}

    def signal(self, number):
        """Sends a signal to exactly this process; false if it is gone."""
        if not self.alive():
            return False
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if start_time_of(self.pid) != self.start_time:  # The handle could already be a successor's.
                return False
            signal.pidfd_send_signal(handle, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)

    def wait_gone(self, seconds):
        end = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def stop(self, seconds=20):
        """SIGTERM, and SIGKILL for what has not ended in `seconds`. True if it ran."""
        if not self.signal(signal.SIGTERM):
            return False
        if not self.wait_gone(seconds):
            house.say(f"{self.name} (pid {self.pid}) did not end in {seconds} s; killed. Log: {self.log}")
            self.signal(signal.SIGKILL)
            self.wait_gone(10)
        return True


class Cluster:
    """Made by `start`, or read from its state by `load`."""

    def __init__(self, name):
        self.name = name
        self.folder = RUN_FOLDER / name
        self.processes = {}
        self.ports = {}

    # --- state ---

    def save(self):
        state = {"boot": boot_id(), "ports": self.ports, "processes": [
            {"name": p.name, "command": p.command, "log": str(p.log), "http_port": p.http_port, "pid": p.pid,
             "start_time": p.start_time} for p in self.processes.values()]}
        temporary = self.folder / "cluster.json.new"
        temporary.write_text(json.dumps(state, indent=1), encoding="utf-8")
        temporary.rename(self.folder / "cluster.json")

    @classmethod
    def load(cls, name):
        cluster = cls(name)
        try:
            state = json.loads((cluster.folder / "cluster.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return cluster
        cluster.ports = state["ports"]
        same_boot = state["boot"] == boot_id()
        for p in state["processes"]:
            cluster.processes[p["name"]] = Process(p["name"], p["command"], pathlib.Path(p["log"]), p["http_port"],
                                                   p["pid"] if same_boot else None, p["start_time"])
        return cluster

    # --- life ---

    @classmethod
    def start(cls, name, datanodes=3, extra_keys=None):
        """Stops and removes an earlier cluster of this name, formats a new one, starts it and waits until all are ready."""
        for binary in (NAMENODE, DATANODE):
            if not binary.exists():
                raise ClusterError(f"{binary.relative_to(house.ROOT)} is not there: this tree does not build it yet")
        cls.load(name).stop()
        cluster = cls(name)
        shutil.rmtree(cluster.folder, ignore_errors=True)
        cluster.folder.mkdir(parents=True)
        try:
            cluster.lay_out(datanodes, extra_keys or {})
            formatted = house.run_logged([*cluster.processes["namenode"].command, "--format"], cluster.folder / "format.log")
            if formatted != 0:
                raise ClusterError("formatting failed:\n" + tail(cluster.folder / "format.log"))
            for process in cluster.processes:
                cluster.start_process(process)
            for process in cluster.processes:
                cluster.wait_ready(process)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def lay_out(self, datanodes, extra_keys):
        taken = set()
        self.ports = {"ipc": free_port(8020, taken), "grpc": free_port(8021, taken), "http": free_port(9870, taken)}
        shared = {
            "cairn.namenode.grpc-address": f"127.0.0.1:{self.ports['grpc']}",
            "dfs.namenode.rpc-address": f"127.0.0.1:{self.ports['ipc']}",
            **extra_keys,
        }
        self.add("namenode", NAMENODE, self.ports["http"], {
            **shared,
            "dfs.namenode.name.dir": str(self.folder / "namenode" / "name"),
            "cairn.namenode.grpc-bind-address": f"127.0.0.1:{self.ports['grpc']}",
            "dfs.namenode.rpc-bind-host": "127.0.0.1",
            "dfs.namenode.http-address": f"127.0.0.1:{self.ports['http']}",
        })
        for number in range(1, datanodes + 1):
            transfer, http, grpc = free_port(9866, taken), free_port(9864, taken), free_port(9868, taken)
            name = f"datanode{number}"
            self.add(name, DATANODE, http, {
                **shared,
                "dfs.datanode.data.dir": str(self.folder / name / "data"),
                "dfs.datanode.hostname": "127.0.0.1",
                "dfs.datanode.address": f"127.0.0.1:{transfer}",
                "dfs.datanode.http.address": f"127.0.0.1:{http}",
                "cairn.datanode.grpc-bind-address": f"127.0.0.1:{grpc}",
            })
        # What a client of this cluster needs: CAIRN_CONF may point here.
        self.write_yaml(self.folder / "client.yaml", {**shared, "fs.defaultFS": self.address("cairn")})

    def add(self, name, binary, http_port, keys):
        folder = self.folder / name
        folder.mkdir(parents=True)
        config = folder / "cairn.yaml"
        self.write_yaml(config, keys)
        self.processes[name] = Process(name, [str(binary), "--config", str(config)], folder / "out.log", http_port)

    @staticmethod
    def write_yaml(path, keys):
        path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items()), encoding="utf-8")

    def start_process(self, name, arguments=(), environment=None):
        process = self.processes[name]
        with open(process.log, "ab") as log:
            process.child = subprocess.Popen(
                [*process.command, *arguments], cwd=process.log.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, **(environment or {})})
        process.pid = process.child.pid
        process.start_time = start_time_of(process.pid)
        self.save()

    def wait_ready(self, name, seconds=60):
        process = self.processes[name]
        end = time.monotonic() + seconds
        answer = "nothing"
        while time.monotonic() < end:
            if not process.alive():
                raise ClusterError(f"{name} ended while starting; the end of {process.log}:\n{tail(process.log)}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{process.http_port}/readyz", timeout=5):
                    return
            except urllib.error.HTTPError as error:
                answer = f"{error.code} {error.read(400).decode(errors='replace').strip()}"
            except OSError as error:
                answer = str(error)
            time.sleep(0.1)
        raise ClusterError(f"{name} was not ready after {seconds} s (/readyz: {answer}); the end of {process.log}:\n{tail(process.log)}")

    def kill(self, name):
        """kill -9, and waits until it is gone."""
        self.processes[name].signal(signal.SIGKILL)
        self.processes[name].wait_gone(10)

    def stop(self):
        """DataNodes first, so that none reports a lost NameNode. The number of processes that ran."""
        names = sorted(self.processes, key=lambda name: name == "namenode")
        return sum(self.processes[name].stop() for name in names)

    def address(self, scheme):
        port = {"cairn": "grpc", "hdfs": "ipc", "http": "http"}[scheme]
        return f"{scheme}://127.0.0.1:{self.ports[port]}"


def tail(path, lines=15):
    try:
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError as error:
        return str(error)


def stop_all():
    """Stops every cluster of this checkout; the number of processes that ran."""
    if not RUN_FOLDER.exists():
        return 0
    return sum(Cluster.load(folder.name).stop() for folder in sorted(RUN_FOLDER.iterdir()) if folder.is_dir())
