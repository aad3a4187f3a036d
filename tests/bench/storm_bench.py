"""./dev bench storm [--json] [--scale F] [--rate N]: what a mass deletion does to those who write meanwhile, and what a full walk and a
restart cost.

One NameNode and three DataNodes as real processes, and a simulator of three more that hold a million replicas each (dn_simulator: the
product's lanes over a store that only remembers). Clients write and close files of 256 KiB, synced, all the time that is measured: a
hundred a second (--rate), which leaves something of two cores. With --rate 0 they take all there is: then everything else can only be had
at their cost, and what is measured is how the two share.

Storm: quiet and storm alternate three times. A storm deletes 1,000,000 replicas at once: 100,200 real ones on the volumes that take the
writes, 102 of them of 128 MiB, and the rest on the simulator. A phase lasts until its deletion is done, and for at least 2,000 closes and
100 heartbeats of each DataNode. Heartbeat and report figures are the worst DataNode's; medians of the three phases' p99s.
Walk: a simulated DataNode begins anew and states all of its million replicas, beside writers and without.
Restart: the NameNode is killed and started again over three million replicas.

--scale 0.05 does all with a twentieth of the replicas. With --json: one object; exit code 1 when a bound is missed."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

from nn_bench import ROOT, TOOLS, Report, tool

sys.path.insert(0, str(ROOT / "deploy" / "dev"))

import cluster  # noqa: E402  pylint: disable=wrong-import-position

HEARTBEAT_MS = 200
SMALL_BYTES, LARGE_BYTES, WRITE_BYTES = 1000, 128 << 20, 256 << 10
WRITERS = 8
CLOSES, HEARTBEATS = 2000, 100  # Of a phase, at least.
ROUNDS = 3
FILES_OF_A_SIMULATED_DIRECTORY = 10_000  # nn_fill: 100 files in each of 100 directories.
KEYS = {"dfs.heartbeat.interval": f"{HEARTBEAT_MS}ms", "dfs.replication": 3,
        "hadoop.user.group.static.mapping.overrides": "bench=supergroup"}


def quantile(buckets, q):
    """Of a histogram's cumulative {upper bound: count}, in its own unit, straight within a bucket."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]]
    wanted, below, lower = q * total, 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= wanted and buckets[bound] > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (wanted - below) / (buckets[bound] - below)
        below, lower = buckets[bound], bound
    return 0.0


def buckets_of(metrics, name):
    return {float(bound): count for key, count in metrics.items()
            for bound in re.findall(rf'^{name}_bucket{{le="([^"]+)"}}$', key)}


class Simulator:
    def __init__(self, namenode, filled):
        self.process = subprocess.Popen(
            [str(TOOLS / "dn_simulator"), "--namenode", namenode, "--first-block", str(filled["first_block"]), "--first-stamp",
             str(filled["first_stamp"]), "--replicas", str(filled["blocks"]), "--length", str(filled["length"]), "--heartbeat-ms",
             str(HEARTBEAT_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        # It stands for other machines, whose work would not take these cores from anybody.
        os.setpriority(os.PRIO_PROCESS, self.process.pid, 19)
        with contextlib.suppress(OSError):  # A kernel without groups by session.
            pathlib.Path(f"/proc/{self.process.pid}/autogroup").write_text("19", encoding="utf-8")

    def ask(self, word="stats"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench: dn_simulator ended")
        return json.loads(line)

    def settle(self, seconds=600):
        """Waits until all its nodes are registered and everything they said is durable; the seconds that took."""
        begin = time.monotonic()
        calm = 0
        while calm < 5:
            if time.monotonic() - begin > seconds:
                sys.exit("bench: the simulated DataNodes do not settle")
            stats = self.ask()
            calm = calm + 1 if stats["registered"] == 3 and stats["unacknowledged"] == 0 else 0
            time.sleep(0.1)
        return time.monotonic() - begin - 0.5

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Writers:
    """Writes and closes beside what is measured, until `end`."""

    def __init__(self, address, base, rate):
        self.process = subprocess.Popen([str(TOOLS / "storm_load"), "write", "--namenode", address, "--base", base, "--bytes",
                                         str(WRITE_BYTES), "--writers", str(WRITERS), "--rate", str(rate)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        text, _ = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit("bench: the writers failed")
        return json.loads(text)


class Phase:
    """What the DataNodes did between two moments: intervals of heartbeats, latencies of reports."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.begin = time.monotonic()
        self.before = [buckets_of(node.metrics(), "cairn_report_ack_lag_seconds") for node in nodes]
        self.intervals = [[] for _ in nodes]
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.sample, args=(i,)) for i in range(len(nodes))]
        for thread in self.threads:
            thread.start()

    def sample(self, i):
        # More often than there are heartbeats, so that none is missed; one that was late is seen more often.
        while not self.stop.wait(HEARTBEAT_MS / 3000):
            self.intervals[i].append(self.nodes[i].metrics()["cairn_heartbeat_interval_seconds"] * 1e3)

    def long_enough(self):
        return time.monotonic() - self.begin >= (HEARTBEATS + 2) * HEARTBEAT_MS / 1e3

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        worst_heartbeat = max(sorted(intervals)[int(0.99 * len(intervals))] for intervals in self.intervals)
        worst_report = 0.0
        for node, before in zip(self.nodes, self.before):
            after = buckets_of(node.metrics(), "cairn_report_ack_lag_seconds")
            worst_report = max(worst_report, quantile({bound: after[bound] - before.get(bound, 0) for bound in after}, 0.99) * 1e3)
        return {"heartbeat_p99_ms": worst_heartbeat, "report_p99_ms": worst_report}


class Bench:
    def __init__(self, report, scale, rate):
        self.report, self.scale, self.rate = report, scale, rate
        self.simulated = max(ROUNDS, round(100 * scale)) * FILES_OF_A_SIMULATED_DIRECTORY  # 1,000,000 files.
        # Of a round: 300,000 files, 900,000 replicas.
        self.deleted_directories = max(1, self.simulated // FILES_OF_A_SIMULATED_DIRECTORY * 3 // 10)
        self.small, self.large = max(100, round(33_366 * scale)), max(1, round(34 * scale))
        cluster.Cluster.load("bench-storm").stop()
        self.cluster = cluster.Cluster("bench-storm")
        shutil.rmtree(self.cluster.folder, ignore_errors=True)
        self.cluster.folder.mkdir(parents=True)
        self.cluster.lay_out(3, KEYS)
        self.namenode = self.cluster.processes["namenode"]
        self.nodes = [self.cluster.processes[f"datanode{i}"] for i in (1, 2, 3)]
        self.address = self.cluster.address("cairn")
        self.bases = 0

    def start(self):
        filled = tool("nn_fill", "--directory", self.cluster.folder / "namenode" / "name", "--files", self.simulated, "--base", "/fill")
        for name in self.cluster.processes:
            self.cluster.start_process(name)
        for name in self.cluster.processes:
            self.cluster.wait_ready(name)
        self.simulator = Simulator(f"127.0.0.1:{self.cluster.ports['grpc']}", filled)
        seconds = self.simulator.settle()
        self.report.say(f"{3 * self.simulated} simulated replicas reported in {seconds:.1f} s")

    def stop(self):
        if hasattr(self, "simulator"):
            self.simulator.end()
        self.cluster.stop()
        shutil.rmtree(self.cluster.folder, ignore_errors=True)

    def pending(self):
        """Replicas that are still to be deleted, wherever they wait, and trees that are still to be freed."""
        namenode = self.namenode.metrics()
        return (namenode["cairn_reclaim_works"] + namenode["cairn_reclaim_pending_blocks"]
                + sum(node.metrics()["cairn_reclaim_pending_blocks"] for node in self.nodes))

    def settle(self):
        while self.pending() > 0:
            time.sleep(0.2)
        subprocess.run(["sync", "-f", str(self.cluster.folder)], check=False)

    def replicas(self):
        return self.simulator.ask()["replicas"] + sum(node.metrics()["cairn_datanode_replicas"] for node in self.nodes)

    def dfs(self, *arguments):
        return subprocess.run([str(cluster.CAIRN), "dfs", *arguments], capture_output=True, text=True, check=False,
                              env={"CAIRN_CONF": str(self.cluster.folder / "client.yaml"), "HADOOP_USER_NAME": "bench"})

    def delete(self, *paths):
        done = self.dfs("-rm", "-r", "-skipTrash", *paths)
        if done.returncode != 0:
            sys.exit(f"bench: the deletion failed: {done.stderr.strip()}")

    def fill(self, base, files, size, writers):
        return tool("storm_load", "fill", "--namenode", self.address, "--base", base, "--files", files, "--bytes", size,
                    "--writers", writers, env={"HADOOP_USER_NAME": "bench", "PATH": "/usr/bin:/bin"})

    def measure(self, begin=lambda: None, done=lambda: True):
        """A phase beside writers: from `begin` until `done`, and long enough."""
        self.bases += 1
        writers = Writers(self.address, f"/write{self.bases}", self.rate)
        time.sleep(2)  # Connections and files that are made once.
        writers.end()
        writers = Writers(self.address, f"/write{self.bases}/measured", self.rate)
        phase = Phase(self.nodes)
        begin()
        ended = None
        while True:
            time.sleep(0.2)
            if ended is None and done():
                ended = time.monotonic() - phase.begin
            if ended is not None and phase.long_enough() and self.closes(f"/write{self.bases}/measured") >= CLOSES:
                break
        figures = {**writers.end(), **phase.end(), "ended_after_s": ended}
        self.delete(f"/write{self.bases}")
        self.settle()
        return figures

    def closes(self, base):
        done = self.dfs("-count", base)
        return int(done.stdout.split()[1]) if done.returncode == 0 else 0

    def line(self, name, f):
        self.report.say(f"{name}: close p50 {f['close_p50_us'] / 1e3:.1f}, p99 {f['close_p99_us'] / 1e3:.1f}, max "
                        f"{f['close_max_us'] / 1e3:.1f} ms, {f['mib_per_s']:.1f} MiB/s; report p99 {f['report_p99_ms']:.1f} ms; heartbeat "
                        f"interval p99 {f['heartbeat_p99_ms']:.0f} ms; {f['files']} closes"
                        + (f"; {f['deleted']:.0f} replicas deleted in {f['ended_after_s']:.1f} s, {f['deleted'] / f['ended_after_s']:.0f}/s"
                           if "deleted" in f else ""))

    def storm(self, number):
        """A quiet phase and one beside a deletion."""
        self.fill(f"/small{number}", self.small, SMALL_BYTES, 16)
        self.fill(f"/large{number}", self.large, LARGE_BYTES, 4)
        self.settle()
        quiet = self.measure()
        self.line(f"quiet {number + 1}", quiet)
        before = self.replicas()
        first = number * self.deleted_directories
        trees = [f"/fill/d{i}" for i in range(first, first + self.deleted_directories)] + [f"/small{number}", f"/large{number}"]
        storm = self.measure(lambda: self.delete(*trees), lambda: self.pending() == 0)
        storm["deleted"] = before - self.replicas()
        self.line(f"storm {number + 1}", storm)
        return quiet, storm

    def storms(self):
        pairs = [self.storm(number) for number in range(ROUNDS)]
        quiets, storms = [quiet for quiet, _ in pairs], [storm for _, storm in pairs]
        middle = lambda phases, key: statistics.median(phase[key] for phase in phases)
        quiet_close, storm_close = middle(quiets, "close_p99_us") / 1e3, middle(storms, "close_p99_us") / 1e3
        self.report.results["storm"] = {"quiet": quiets, "storm": storms}
        self.report.bound("close p99 in the storm", storm_close, max(1.2 * quiet_close, quiet_close + 5), " ms")
        self.report.bound("heartbeat interval p99 in the storm", middle(storms, "heartbeat_p99_ms"), 1.1 * HEARTBEAT_MS, " ms")
        self.report.bound("report latency p99 in the storm", middle(storms, "report_p99_ms"), None, " ms")
        self.report.bound("replicas deleted a second", middle(storms, "deleted") / middle(storms, "ended_after_s"), None)

    def walk(self):
        cpu = lambda: self.namenode.cpu_seconds()
        time.sleep(3)
        before = cpu()
        time.sleep(5)
        idle = (cpu() - before) / 5
        before, began = cpu(), time.monotonic()
        ranges = self.simulator.ask()["ranges"]
        self.simulator.ask("restart")
        self.simulator.settle()
        took = time.monotonic() - began
        used = cpu() - before - idle * took
        stated = self.simulator.ask()["ranges"] - ranges
        quiet = self.measure()
        self.line("quiet", quiet)
        busy = self.measure(lambda: self.simulator.ask("restart"), lambda: self.simulator.ask()["unacknowledged"] == 0)
        self.line("walk", busy)
        self.report.say(f"a walk of {self.simulated} replicas that agrees: {stated} ranges in {took:.1f} s, "
                        f"{used:.2f} s of the NameNode's CPU")
        self.report.results["walk"] = {"ranges": stated, "seconds": took, "namenode_cpu_s": used, "quiet": quiet, "walk": busy}
        self.report.bound("walk that agrees, CPU of the NameNode", used, 1, " s")
        self.report.bound("report latency p99 beside a walk", busy["report_p99_ms"], max(3 * quiet["report_p99_ms"], 50), " ms")

    def restart(self):
        ranges = self.simulator.ask()["ranges"]
        self.cluster.kill("namenode")
        began = time.monotonic()
        self.cluster.start_process("namenode")
        tool("nn_load", "first", "--namenode", f"127.0.0.1:{self.cluster.ports['grpc']}")
        serving = time.monotonic() - began
        while self.namenode.metrics().get('cairn_datanodes{state="live"}', 0) < 6:
            time.sleep(0.1)
        self.simulator.settle()
        resumed = time.monotonic() - began
        stated = self.simulator.ask()["ranges"] - ranges
        self.report.say(f"restart over {3 * self.simulated} simulated replicas: serving after {serving:.1f} s, streams resumed after "
                        f"{resumed:.1f} s, {stated} ranges stated")
        self.report.results["restart"] = {"serving_s": serving, "resumed_s": resumed, "ranges": stated}
        self.report.bound("restart, first call served", serving, 10, " s")
        self.report.bound("restart, streams resumed", resumed, 30, " s")
        self.report.bound("restart, ranges of full reports", stated, 0)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench storm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rate", type=int, default=100, metavar="N", help="files begun in a second; 0: as fast as the writers can")
    parser.add_argument("--only", choices=("storm", "walk", "restart"))
    options = parser.parse_args(sys.argv[2:])
    report = Report((lambda text: print(text, file=sys.stderr, flush=True)) if options.json else (lambda text: print(text, flush=True)))
    bench = Bench(report, options.scale, options.rate)
    try:
        bench.start()
        for part in ("walk", "restart", "storm"):
            if options.only in (None, part):
                {"walk": bench.walk, "restart": bench.restart, "storm": bench.storms}[part]()
    except cluster.ClusterError as error:
        sys.exit(f"bench: {error}")
    except SystemExit:
        report.say(f"the end of {bench.namenode.log}:\n{cluster.tail(bench.namenode.log)}")
        raise
    finally:
        bench.stop()
    if options.json:
        print(json.dumps({"bounds": report.bounds, **report.results}))
    return 0 if all(bound["ok"] for bound in report.bounds) else 1


if __name__ == "__main__":
    sys.exit(main())
