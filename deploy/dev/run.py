"""./dev run [--quick]: builds the release, starts 1 NameNode and 3 DataNodes as real processes, runs the main job on them, and leaves
the cluster up.

The main job is deploy/dev/main_job.py, a module with `run(cluster, quick) -> exit code`; without it the cluster just starts."""

import argparse
import importlib.util
import sys

import cluster
import house


def main():
    parser = argparse.ArgumentParser(prog="./dev run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the main job on a part of its input")
    parser.add_argument("--name", default="main", help="of the cluster: its state is in build/run/NAME")
    parser.add_argument("--datanodes", type=int, default=3)
    parser.add_argument("--cluster-only", action="store_true", help="no main job")
    options = parser.parse_args()

    if not house.build("release"):
        return 1
    try:
        running = cluster.Cluster.start(options.name, options.datanodes)
    except cluster.ClusterError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    house.say(f"run: 1 NameNode and {options.datanodes} DataNodes are up")

    code = 0
    if not options.cluster_only and importlib.util.find_spec("main_job") is not None:
        import main_job  # pylint: disable=import-outside-toplevel
        code = main_job.run(running, options.quick)

    client = running.folder / "client.yaml"
    house.say(f"""
The cluster '{running.name}' is up:
  {running.address('cairn'):30} native clients and the CLI
  {running.address('hdfs'):30} stock HDFS clients
  {running.address('http'):30} health, metrics
Talk to it:  CAIRN_CONF={client.relative_to(house.ROOT)} build/release/client/cairn dfs -ls /
Its state:   {running.folder.relative_to(house.ROOT)}/ (configuration, logs, data)
Stop it:     ./dev stop""")
    return code


if __name__ == "__main__":
    sys.exit(main())
