"""./dev sim [--seed N] [--seeds K]: the simulated cluster's tests from given seeds.

The tests read CAIRN_SIM_SEED (the first seed) and CAIRN_SIM_SEEDS (how many); a failure prints its seed."""

import argparse
import os
import subprocess
import sys

import house


def main():
    parser = argparse.ArgumentParser(prog="./dev sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--preset", default="release", choices=house.PRESETS)
    parser.add_argument("--filter", help="regular expression on test names")
    options = parser.parse_args()
    if not house.build(options.preset):
        return 1
    if not house.has_target(options.preset, "cairn_tests_sim"):
        house.say("sim: no test has the label sim in this tree")
        return 1
    command = ["ctest", "--test-dir", f"build/{options.preset}", "-L", "^sim$", "-V", "--no-tests=error"]
    if options.filter:
        command += ["-R", options.filter]
    seeds = {"CAIRN_SIM_SEED": str(options.seed), "CAIRN_SIM_SEEDS": str(options.seeds)}
    return subprocess.run(command, cwd=house.ROOT, env={**os.environ, **seeds}, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
