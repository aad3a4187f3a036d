"""./dev bench nn [--json] [--full]: the NameNode beside an empty gRPC echo of the same server style, measured in the same run.

Operations: nn_load drives a cairn-namenode process from 64 callers (and from 1 and 256, which bind nothing), phase after phase, an echo of
as many calls after each; a ratio is the server's CPU for an operation over that of the echo beside it, the median of the rounds. The floor
beside it is a call of the same server that only does with the store what an operation cannot do without: its rows through the one writer
with their sync, or the scan of a directory.
Size: nn_fill loads files of one block each into a NameNode's directory; memory, p50 of stat and create beside a directory of 100,000 files,
restarts after a clean stop and after kill -9, bytes on disk. Delete: a large tree, with a create loop beside it.

--full: 10,000,000 and 1,000,000 files instead of 300,000 and 100,000. With --json: one object; exit code 1 when a bound is missed."""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy" / "dev"))

import cluster  # noqa: E402  pylint: disable=wrong-import-position

TOOLS = ROOT / "build" / "release" / "tests" / "bench"
PHASES = "directories,mkdirs,create,createWithBlock,complete,open,stat,list,rename,delete"
RATIO_LIMITS = {"open": 1.5, "stat": 1.5, "list": 1.5, "mkdirs": 2.5,
                "create": 3, "createWithBlock": 3, "complete": 3, "rename": 3, "delete": 3}
FILES_PER_DIRECTORY = 4  # As NNThroughputBenchmark's own default; what a listing holds.
CACHE_MIB = 256
# Simulated DataNodes report nothing: what they acknowledged stays unconfirmed, and nobody is to ask for it meanwhile.
# The tools' user may do everything.
KEYS = {"cairn.namenode.confirm-interval": "6h", "cairn.namenode.row-cache": "64m", "cairn.namenode.block-cache": f"{CACHE_MIB}m",
        "hadoop.user.group.static.mapping.overrides": "bench=supergroup"}
REFERENCE_FILES = 100_000


def tool(name, *arguments, **options):
    done = subprocess.run([str(TOOLS / name), *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"bench: {name} failed")
    return json.loads(done.stdout)


class Namenode:
    """A cairn-namenode process on a directory that is new or that nn_fill fills."""

    def __init__(self, name):
        cluster.Cluster.load(name).stop()
        self.cluster = cluster.Cluster(name)
        shutil.rmtree(self.cluster.folder, ignore_errors=True)
        self.cluster.folder.mkdir(parents=True)
        self.cluster.lay_out(0, KEYS)
        self.process = self.cluster.processes["namenode"]
        self.data = self.cluster.folder / "namenode" / "name"

    @property
    def address(self):
        return f"127.0.0.1:{self.cluster.ports['grpc']}"

    def format(self):
        if subprocess.run([*self.process.command, "--format"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise cluster.ClusterError("formatting failed")

    def start(self):
        """Starts it; the seconds until it answered its first call."""
        begin = time.monotonic()
        self.cluster.start_process("namenode")
        tool("nn_load", "first", "--namenode", self.address)
        return time.monotonic() - begin

    def kill(self):
        self.cluster.kill("namenode")

    def stop(self):
        self.process.stop()

    def metrics(self):
        return self.process.metrics()

    def settle(self, seconds=600):
        """Waits until what was deleted is reclaimed; the CPU seconds that took, and what is not done by then."""
        begin, before = time.monotonic(), self.cpu_seconds()
        while self.metrics()["cairn_reclaim_works"] > 0 and time.monotonic() - begin < seconds:
            time.sleep(0.2)
        return self.cpu_seconds() - before

    def cpu_seconds(self):
        return self.process.cpu_seconds()

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def disk_bytes(self):
        return sum(f.stat().st_blocks * 512 for f in self.data.rglob("*") if f.is_file())

    def remove(self):
        self.stop()
        shutil.rmtree(self.cluster.folder, ignore_errors=True)

    def load(self, phases, **options):
        flags = [part for name, value in options.items() for part in ("--" + name.replace("_", "-"), value)]
        return tool("nn_load", "run", "--namenode", self.address, "--pid", self.process.pid, "--phases", phases, *flags)


class Echo:
    def __init__(self):
        self.folder = cluster.Cluster("bench-echo").folder
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.process = subprocess.Popen([str(TOOLS / "echo_server"), "127.0.0.1", "0", str(self.folder / "store")],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench: echo_server failed")
        self.port = int(line)

    def flags(self):
        return {"echo": f"127.0.0.1:{self.port}", "echo_pid": self.process.pid}

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def with_limits(phases):
    """nn_load's phases without the raw limits that ran after each, and the echoes; what a limit used stands in its phase."""
    ours, echoes = [], []
    for phase in phases:
        if phase["name"] == "Echo":
            echoes.append({**phase, "name": "echo"})
            ours[-1].update(echo_cpu_us=phase["server_cpu_us"], ratio=ours[-1]["server_cpu_us"] / phase["server_cpu_us"])
        elif phase["name"].startswith(("Write", "Scan")):
            ours[-1].update(floor_cpu_us=phase["server_cpu_us"], floor_ratio=phase["server_cpu_us"] / ours[-1]["echo_cpu_us"])
        else:
            ours.append(phase)
    return ours + echoes


class Report:
    def __init__(self, say):
        self.say = say
        self.bounds = []
        self.results = {}

    def bound(self, name, value, limit, unit=""):
        ok = limit is None or value <= limit
        self.bounds.append({"name": name, "value": round(value, 3), "limit": limit, "ok": ok})
        self.say(f"bound {name}: {value:.2f}{unit}, limit {limit if limit is not None else 'none'}{'' if ok else '  MISSED'}")


def block(name, r):
    """NNThroughputBenchmark's lines for an operation, and ours below."""
    threads = ", ".join(f"{thread} {used:.1f}" for thread, used in sorted(r["server_threads_us"].items(), key=lambda item: -item[1]))
    return (f"--- {name} stats ---\n# operations: {r['operations']}\nElapsed Time: {r['seconds'] * 1e3:.0f}\n"
            f" Ops per sec: {r['ops_per_s']:.2f}\nAverage Time: {r['average_ms']:.3f}\n"
            f"p50 {r['p50_us']:.0f} us, p99 {r['p99_us']:.0f} us, CPU an operation: client {r['client_cpu_us']:.1f} us, "
            f"server {r['server_cpu_us']:.1f} us ({threads})"
            + (f"; echo's server {r['echo_cpu_us']:.1f} us, ratio {r['ratio']:.2f}" if "ratio" in r else "")
            + (f"; the floor's {r['floor_cpu_us']:.1f} us, ratio {r['floor_ratio']:.2f}" if "floor_ratio" in r else ""))


def middle(runs):
    """Medians of the same phase in several rounds, key by key."""
    result = {"operations": runs[0]["operations"], "name": runs[0]["name"]}
    for key, value in runs[0].items():
        if isinstance(value, float):
            result[key] = statistics.median(run[key] for run in runs)
    threads = {thread for run in runs for thread in run["server_threads_us"]}
    result["server_threads_us"] = {t: statistics.median(run["server_threads_us"].get(t, 0) for run in runs) for t in threads}
    return result


def measure_operations(report, rounds, operations, connections):
    namenode, echo = Namenode("bench-nn"), Echo()
    namenode.format()
    namenode.start()
    try:
        shape = {"connections": connections, "files_per_directory": FILES_PER_DIRECTORY, **echo.flags()}
        namenode.load(PHASES, operations=2000, base="/warm", **shape)
        for in_flight, times, count in ((64, rounds, operations), (1, 1, operations // 10), (256, 1, operations)):
            runs, reclaims = {}, []
            before = namenode.metrics()
            for number in range(times):
                namenode.settle()
                phases = namenode.load(PHASES, operations=count, in_flight=in_flight, base=f"/n{in_flight}r{number}", **shape)
                for phase in with_limits(phases):
                    runs.setdefault(phase["name"], []).append(phase)
                reclaims.append(namenode.settle() * 1e6 / count)
            after = namenode.metrics()
            report.say(f"\n{in_flight} in flight, {connections} connections, medians of {times}:")
            medians = {name: middle(phase_runs) for name, phase_runs in runs.items()}
            for name, result in medians.items():
                report.say(block(name, result))
            report.results[f"operations_{in_flight}"] = medians
            report.say(f"reclaiming a deleted file afterwards, at most: {statistics.median(reclaims):.1f} us of the server's CPU")
            batches = after["cairn_journal_batches_total"] - before["cairn_journal_batches_total"]
            syncs = after["cairn_journal_sync_seconds_count"] - before["cairn_journal_sync_seconds_count"]
            size = (after["cairn_journal_batch_size_sum"] - before["cairn_journal_batch_size_sum"]) / max(batches, 1)
            report.say(f"mutations a batch: {size:.1f}")
            if in_flight == 64:
                for name, limit in RATIO_LIMITS.items():
                    report.bound(f"{name} at 64 in flight, CPU over echo", medians[name]["ratio"], limit)
                report.bound("syncs a batch", syncs / max(batches, 1), 1)
    finally:
        echo.stop()
        namenode.remove()


def fill(name, files):
    namenode = Namenode(name)
    filled = tool("nn_fill", "--directory", namenode.data, "--files", files, "--base", "/fill")
    return namenode, filled


def measure_size(report, files, rounds=5):
    """Two NameNodes side by side, one of 100,000 files: their rounds alternate, so that both see the same machine."""
    namenodes, figures = {}, {}
    try:
        for count in (REFERENCE_FILES, files):
            namenodes[count], filled = fill(f"bench-nn-{count}", count)
            figures[count] = {"fill_files_per_s": count / filled["seconds"], "stat_p50_us": [], "create_p50_us": []}
            namenodes[count].start()
            # Fills the caches.
            namenodes[count].load("stat", operations=min(count, 300_000), files=count, files_per_directory=100, base="/fill")
        for number in range(rounds):
            for count, namenode in namenodes.items():
                stat = namenode.load("stat", operations=20_000, files=count, files_per_directory=100, base="/fill", in_flight=16)
                create = namenode.load("directories,create", operations=10_000, files_per_directory=100, base=f"/new{number}", in_flight=16)
                figures[count]["stat_p50_us"].append(stat[0]["p50_us"])
                figures[count]["create_p50_us"].append(create[0]["p50_us"])
        for count, namenode in namenodes.items():
            figures[count]["resident_mib"] = namenode.resident_mib()
            namenode.kill()
            figures[count]["start_after_kill_s"] = namenode.start()
            namenode.stop()
            figures[count]["start_after_stop_s"] = namenode.start()
            figures[count]["disk_bytes_per_file"] = namenode.disk_bytes() / count
    finally:
        for namenode in namenodes.values():
            namenode.remove()
    small, large = figures[REFERENCE_FILES], figures[files]
    for key in ("stat_p50_us", "create_p50_us"):
        large[key + "_ratio"] = statistics.median(ours / other for ours, other in zip(large[key], small[key]))
        for values in figures.values():
            values[key] = statistics.median(values[key])
    for count, values in figures.items():
        report.say(f"\n{count} files: " + ", ".join(f"{key} {value:.1f}" for key, value in values.items()))
    report.results["size"] = {str(count): values for count, values in figures.items()}
    report.bound(f"{files} files, resident MiB", large["resident_mib"], CACHE_MIB + 300)
    report.bound(f"{files} files, stat p50 over that of {REFERENCE_FILES}", large["stat_p50_us_ratio"], 1.5)
    report.bound(f"{files} files, create p50 over that of {REFERENCE_FILES}", large["create_p50_us_ratio"], 1.5)
    report.bound(f"{files} files, start after a clean stop", large["start_after_stop_s"], 3, " s")
    report.bound(f"{files} files, start after kill -9", large["start_after_kill_s"], 10, " s")
    report.bound(f"{files} files, bytes on disk a file", large["disk_bytes_per_file"], None)


class CreateLoop:
    """Creates files beside what is measured, until `end`."""

    def __init__(self, namenode, base):
        self.process = subprocess.Popen([str(TOOLS / "nn_load"), "loop", "--namenode", namenode.address, "--pid", str(namenode.process.pid),
                                         "--base", base, "--in-flight", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        text, _ = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit("bench: the create loop failed")
        return json.loads(text)


def list_of_parent(namenode):
    return namenode.load("listTop", operations=500, in_flight=1)[0]["p50_us"]


def measure_delete(report, files):
    namenode, filled = fill("bench-nn-delete", files)
    try:
        namenode.start()
        list_of_parent(namenode)
        quiet_list = list_of_parent(namenode)
        loop = CreateLoop(namenode, "/warm")
        time.sleep(3)
        loop.end()
        loop = CreateLoop(namenode, "/quiet")
        time.sleep(8)
        quiet = loop.end()
        loop = CreateLoop(namenode, "/busy")
        begin = time.monotonic()
        namenode.load("deleteTree", base="/fill", in_flight=1)
        reclaiming = True
        while reclaiming:
            time.sleep(0.2)
            reclaiming = namenode.metrics()["cairn_reclaim_works"] > 0 and time.monotonic() - begin < 1800
        reclaim_seconds = time.monotonic() - begin
        busy = loop.end()
        after_list = list_of_parent(namenode)
    finally:
        namenode.remove()
    report.say(f"\ndelete of a tree of {files} files: reclaimed in {reclaim_seconds:.1f} s; create beside it p50 {busy['p50_us']:.0f}, "
               f"p99 {busy['p99_us']:.0f} us, {busy['ops_per_s']:.0f}/s; quiet p50 {quiet['p50_us']:.0f}, p99 {quiet['p99_us']:.0f} us, "
               f"{quiet['ops_per_s']:.0f}/s; listing of the parent {quiet_list:.0f} us before, {after_list:.0f} us after")
    report.results["delete"] = {"files": files, "rows": filled["rows_of_delete"], "rows_of_ten": filled["rows_of_delete_of_ten"],
                                "reclaim_seconds": reclaim_seconds, "quiet": quiet, "busy": busy, "list_before_us": quiet_list,
                                "list_after_us": after_list}
    report.bound(f"delete of {files} files, rows written over those of 10", filled["rows_of_delete"] / filled["rows_of_delete_of_ten"], 1)
    report.bound(f"delete of {files} files, p99 of create over its quiet value", busy["p99_us"] / quiet["p99_us"], 2)
    report.bound(f"delete of {files} files, listing the parent over before", after_list / quiet_list, 1.25)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench nn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--operations", type=int, default=20_000, help="of a phase")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--only", choices=("operations", "size", "delete"))
    options = parser.parse_args(sys.argv[2:])
    report = Report((lambda text: print(text, file=sys.stderr, flush=True)) if options.json else (lambda text: print(text, flush=True)))
    try:
        if options.only in (None, "operations"):
            measure_operations(report, options.rounds, options.operations, options.connections)
        if options.only in (None, "size"):
            measure_size(report, 10_000_000 if options.full else 300_000)
        if options.only in (None, "delete"):
            measure_delete(report, 1_000_000 if options.full else 100_000)
    except cluster.ClusterError as error:
        sys.exit(f"bench: {error}")
    if options.json:
        print(json.dumps({"bounds": report.bounds, **report.results}))
    return 0 if all(bound["ok"] for bound in report.bounds) else 1


if __name__ == "__main__":
    sys.exit(main())
