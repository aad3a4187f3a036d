"""./dev bench write|read [--json] [--rounds N] [--mib N]: Cairn beside the raw limit of this machine, measured in the same run.
./dev bench nn: see nn_bench.py; ./dev bench storm: see storm_bench.py.

The same bytes through the same number of processes: one client and three DataNodes against raw_chain (plain blocking sockets,
CRC32C at the ends, new files that are kept). The two alternate, and each figure is the median of its rounds. CPU seconds per GiB
count user and system time of the client and of every DataNode; ratios are ours over raw, for CPU lower is better, for the rate
higher.

With --json: one object; `bounds` has an entry per case (limit null while none is set); exit code 1 when a bound is missed."""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy" / "dev"))

import cluster  # noqa: E402  pylint: disable=wrong-import-position

TOOLS = ROOT / "build" / "release" / "tests" / "bench"
MIB = 1 << 20
GIB = 1 << 30
DATANODES = 3
# (name, streams, part of --mib that each stream gets, packet bytes of both)
CASES = (("1-stream", 1, 1.0, 512 << 10), ("8-streams", 8, 1 / 8, 512 << 10))
# Largest ratio of CPU, ours over raw, per (mode, case); none set yet.
BOUNDS = {}


def run_tool(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {command[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Ours:
    """A cluster of real processes, and load on it."""

    def __init__(self):
        self.cluster = cluster.Cluster.start("bench", DATANODES)
        self.nodes = [self.cluster.processes[f"datanode{i + 1}"] for i in range(DATANODES)]

    def load(self, mode, streams, size, packet, directory):
        before = [node.cpu_seconds() for node in self.nodes]
        result = run_tool(TOOLS / "stream_load", mode, "--namenode", self.cluster.address("cairn"), "--streams", streams,
                          "--bytes", size, "--packet", packet, "--directory", directory)
        gib = streams * size / GIB
        nodes = [(node.cpu_seconds() - b) / gib for node, b in zip(self.nodes, before)]
        client = result["client_cpu_seconds"] / gib
        return {"gib_per_s": gib / result["seconds"], "cpu_s_per_gib": client + sum(nodes), "client_cpu": client, "node_cpu": nodes}

    def stop(self):
        self.cluster.stop()
        shutil.rmtree(self.cluster.folder, ignore_errors=True)


def raw(mode, size, packet, folder, *flags):
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return run_tool(TOOLS / "raw_chain", mode, "--bytes", size, "--packet", packet, "--directory", folder, *flags)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def median_of(rounds):
    middle = {key: statistics.median(r[key] for r in rounds) for key in ("gib_per_s", "cpu_s_per_gib", "client_cpu")}
    middle["node_cpu"] = [statistics.median(values) for values in zip(*(r["node_cpu"] for r in rounds))]
    return middle


def measure(ours, mode, rounds, total, say):
    results = {}
    folder = ROOT / "build" / "run" / "bench-raw"
    for name, streams, part, packet in CASES:
        size = max(MIB, int(total * part) // MIB * MIB)
        our_rounds, raw_rounds = [], []
        for number in range(rounds):
            directory = f"/bench/{mode}-{name}-{number}"
            if mode == "read":
                ours.load("write", streams, size, packet, directory)
            our_rounds.append(ours.load(mode, streams, size, packet, directory))
            # Several streams share the machine as one does: the raw side moves the same bytes in one chain.
            hops = ("--hops", DATANODES, "--sync") if mode == "write" else ()
            raw_rounds.append(raw(mode, size * streams, packet, folder, *hops))
        our, base = median_of(our_rounds), median_of(raw_rounds)
        results[name] = {"ours": our, "raw": base, "ratio_cpu": our["cpu_s_per_gib"] / base["cpu_s_per_gib"],
                         "ratio_rate": our["gib_per_s"] / base["gib_per_s"]}
        nodes = " ".join(f"{n:.2f}" for n in our["node_cpu"])
        say(f"{mode} {name}: ours {our['gib_per_s']:.2f} GiB/s, {our['cpu_s_per_gib']:.2f} CPU s/GiB (client {our['client_cpu']:.2f}, "
            f"nodes {nodes}); raw {base['gib_per_s']:.2f} GiB/s, {base['cpu_s_per_gib']:.2f} CPU s/GiB; "
            f"ratio of CPU {results[name]['ratio_cpu']:.2f}, of rate {results[name]['ratio_rate']:.2f}")
    extra = {}
    if mode == "write":
        for name, flags in (("raw-1-hop", ("--hops", 1, "--sync")), ("raw-sockets-only", ("--hops", DATANODES, "--no-files", "--no-crc"))):
            extra[name] = median_of([raw(mode, total, CASES[0][3], folder, *flags) for _ in range(rounds)])
            say(f"{mode} {name}: {extra[name]['gib_per_s']:.2f} GiB/s, {extra[name]['cpu_s_per_gib']:.2f} CPU s/GiB")
    return results, extra


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("write", "read"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=1024, help="bytes of a round, in MiB")
    options = parser.parse_args()
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if options.json else (lambda text: print(text, flush=True))

    try:
        ours = Ours()
    except cluster.ClusterError as error:
        sys.exit(f"bench: {error}")
    try:
        results, extra = measure(ours, options.mode, options.rounds, options.mib * MIB, say)
    finally:
        ours.stop()
    bounds = []
    for name, result in results.items():
        limit = BOUNDS.get((options.mode, name))
        bounds.append({"name": f"{options.mode} {name} ratio_cpu", "value": result["ratio_cpu"], "limit": limit,
                       "ok": limit is None or result["ratio_cpu"] <= limit})
    for bound in bounds:
        say(f"bound {bound['name']}: {bound['value']:.2f}, limit {bound['limit'] if bound['limit'] is not None else 'none yet'}")
    if options.json:
        print(json.dumps({**results[CASES[0][0]], "cases": results, "extra": extra, "bounds": bounds}))
    return 0 if all(bound["ok"] for bound in bounds) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["nn"]:
        import nn_bench
        sys.exit(nn_bench.main())
    if sys.argv[1:2] == ["storm"]:
        import storm_bench
        sys.exit(storm_bench.main())
    sys.exit(main())
