"""./dev test: everything that has to pass, stage after stage, each with its minutes; a failed stage stops none of the others.

With --label, --preset or --filter only the tests they name, built for that preset. CAIRN_SEED=N in the environment makes property tests
run that seed alone; they print it when they fail."""

import argparse
import os
import re
import subprocess
import sys
import time
import traceback

import house

LABELS = ("unit", "sim", "threads", "cluster", "process")
SANITIZER_ENVIRONMENT = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
    # Debian's libraries are not built for the thread sanitizer: what they do inside would be reported as races.
    "tsan": {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:"
                             f"suppressions={house.ROOT / 'tests' / 'tsan.supp'}"},
}


def python_tests(file, environment=None):
    """Runs a file of Python tests; (passed, failed)."""
    done = subprocess.run([sys.executable, "-B", file], cwd=house.ROOT, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    ran = re.search(r"^Ran (\d+) tests?", done.stdout, re.M)
    total = int(ran.group(1)) if ran else 1
    failed = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", done.stdout))
    if done.returncode != 0:
        failed = max(1, failed)
        print(done.stdout[-8000:], flush=True)
    return total - failed, failed


def tidy():
    """The house rules and their self-tests."""
    return python_tests("tests/tidy_test.py")


def hdfs():
    """Stock HDFS clients, which come from their registries, on real processes."""
    if not house.build("release", ["cairn-namenode", "cairn-datanode", "cairn"]):
        return 0, 1
    return python_tests("tests/hdfs/hadoop_client_test.py", {"CAIRN_PRESET": "release"})


def preset_tests(preset, labels, pattern=None):
    """Builds what carries `labels` and runs it. A build that fails is one failure."""
    if not (house.build_folder(preset) / "build.ninja").exists():
        if house.run_logged(["cmake", "--preset", preset], house.build_folder(preset) / "build.log") != 0:
            house.print_errors(house.build_folder(preset) / "build.log")
            return 0, 1
    targets = []
    # The release build is what ships: all of it has to build. The others build their tests only.
    if preset != "release" or set(labels) != set(LABELS):
        targets = [f"cairn_tests_{label}" for label in labels if house.has_target(preset, f"cairn_tests_{label}")]
        if not targets:
            house.say(f"test {preset}: no test has a label of {', '.join(labels)}")
            return 0, 0
    if not house.build(preset, targets):
        return 0, 1
    return house.run_ctest(preset, labels, SANITIZER_ENVIRONMENT.get(preset), pattern)


def lint():
    budget = os.environ.get("CAIRN_LINT_MINUTES", "8")
    code = subprocess.run([sys.executable, "-B", "deploy/dev/lint.py", "--minutes", budget], cwd=house.ROOT,
                          stdin=subprocess.DEVNULL, check=False).returncode
    return (1, 0) if code == 0 else (0, 1)


STAGES = {
    "tidy": tidy,
    "release": lambda: preset_tests("release", LABELS),
    "asan": lambda: preset_tests("asan", ("unit", "sim", "cluster")),
    "tsan": lambda: preset_tests("tsan", ("threads",)),
    "lint": lint,
}


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__)
    parser.add_argument("--label", action="append", choices=LABELS)
    parser.add_argument("--preset", choices=house.PRESETS)
    parser.add_argument("--filter", help="regular expression on test names")
    parser.add_argument("--only", action="append", choices=tuple(STAGES))
    parser.add_argument("--hdfs", action="store_true", help="stock HDFS clients on a cluster of real processes, and nothing else")
    parser.add_argument("--long", action="store_true",
                        help="counts and durations at full size, and an hour of new seeds for each property test: for nights")
    options = parser.parse_args()
    if options.long:
        os.environ["CAIRN_TEST_LONG"] = "1"

    stages = STAGES if not options.only else {name: STAGES[name] for name in options.only}
    if options.label or options.preset or options.filter:
        preset = options.preset or "release"
        labels = tuple(options.label or LABELS)
        stages = {preset: lambda: preset_tests(preset, labels, options.filter)}

    if options.hdfs:
        stages = {"hdfs": hdfs}

    passed = failed = 0
    figures = []
    for name, stage in stages.items():
        house.say(f"--- {name}")
        begin = time.monotonic()
        try:
            stage_passed, stage_failed = stage()
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()  # A stage that cannot run is a failure, not the end of the others.
            stage_passed, stage_failed = 0, 1
        passed += stage_passed
        failed += stage_failed
        figures.append((name, (time.monotonic() - begin) / 60, stage_passed, stage_failed))

    house.say("--- minutes")
    for name, minutes, stage_passed, stage_failed in figures:
        house.say(f"{name:10} {minutes:6.1f}   {stage_passed} passed, {stage_failed} failed")
    house.say(f"{'total':10} {sum(f[1] for f in figures):6.1f}")
    if passed + failed == 0:
        house.say("nothing was tested, which counts as a failure")
        failed = 1
    house.say(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
