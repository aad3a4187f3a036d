"""./dev bench write|read|nn|storm ...: builds the release and hands over to tests/bench/bench.py."""

import subprocess
import sys

import house

BENCH = house.ROOT / "tests" / "bench" / "bench.py"


def run_bench():
    return subprocess.run([sys.executable, "-B", str(BENCH), *sys.argv[1:]], cwd=house.ROOT, check=False).returncode


def main():
    if not BENCH.exists():
        house.say("bench: tests/bench/bench.py is not in this tree")
        return 1
    if {"-h", "--help"} & set(sys.argv[1:]):
        return run_bench()
    # With --json, standard output is the result's alone.
    log = house.build_folder("release") / "build.log"
    quiet = "--json" in sys.argv
    if quiet:
        code = house.run_logged(["cmake", "--preset", "release"], log)
        code = code or house.run_logged(["cmake", "--build", "build/release", "-j", str(house.JOBS)], log, append=True)
        if code != 0:
            print(f"bench: the build failed; see {log}", file=sys.stderr)
            return 1
    elif not house.build("release"):
        return 1
    return run_bench()


if __name__ == "__main__":
    sys.exit(main())
