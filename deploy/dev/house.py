"""What the programs behind ./dev share: where things are, how a step is run, how ctest's words are counted."""

import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = ("debug", "release", "asan", "tsan", "clang", "fuzz")
JOBS = max(1, len(os.sched_getaffinity(0)))

# Folders with sources of ours, for lint, format and the tidy test.
SOURCE_FOLDERS = ("client", "common", "datanode", "namenode", "tests")
LONGEST_LINE = 140  # As tests/tidy_test.py has it.


def build_folder(preset):
    return ROOT / "build" / preset


def say(text):
    print(text, flush=True)


def run_logged(command, log, environment=None, append=False):
    """Runs `command` from the root with no standard input, all output into the file `log`; returns its exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a" if append else "w", encoding="utf-8") as out:
        out.write(f"$ {' '.join(map(str, command))}\n")
        out.flush()
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False,
            env={**os.environ, **(environment or {})})
    return done.returncode


def print_errors(log, limit=60):
    """The lines of a build log that name errors, with what follows them; the log's end if there are none."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    marked = re.compile(r"\b(error|FAILED|undefined reference|CMake Error|multiple definition)\b")
    chosen = []
    until = -1
    for index, line in enumerate(lines):
        if marked.search(line):
            until = index + 4
        if index <= until and not line.startswith(("/usr/bin/ccache", "/usr/bin/cmake -E env")) and len(line) < 2000:
            chosen.append(line)
    chosen = chosen or lines[-20:]
    for line in chosen[:limit]:
        print(line[:400])
    if len(chosen) > limit:
        print(f"... {len(chosen) - limit} more lines in {log.relative_to(ROOT)}")
    sys.stdout.flush()


def build(preset, targets=()):
    """Configures if needed and builds; prints errors only, and a last line. True on success."""
    begin = time.monotonic()
    log = build_folder(preset) / "build.log"
    code = 0
    if not (build_folder(preset) / "build.ninja").exists():
        code = run_logged(["cmake", "--preset", preset], log)
    elif log.exists():
        log.write_text("", encoding="utf-8")
    if code == 0:
        command = ["cmake", "--build", f"build/{preset}", "-j", str(JOBS)]
        for target in targets:
            command += ["--target", target]
        command += ["--", "-k", "20"]  # Not one error at a time.
        code = run_logged(command, log, append=True)
    minutes = (time.monotonic() - begin) / 60
    if code != 0:
        print_errors(log)
        say(f"build {preset}: FAILED after {minutes:.1f} minutes; all of it in {log.relative_to(ROOT)}")
        return False
    say(f"build {preset}: done in {minutes:.1f} minutes")
    return True


def has_target(preset, target):
    """Whether the configured build knows `target` (a label without a test has no target)."""
    ninja = build_folder(preset) / "build.ninja"
    return ninja.exists() and re.search(rf"^build {re.escape(target)}: phony", ninja.read_text(), re.M) is not None


def run_ctest(preset, labels, environment=None, pattern=None):
    """Runs the tests of `labels`; prints failures with their output. Returns (passed, failed)."""
    log = build_folder(preset) / "ctest.log"
    long_run = os.environ.get("CAIRN_TEST_LONG", "0") != "0"
    command = ["ctest", "--test-dir", f"build/{preset}", "-j", str(JOBS), "--output-on-failure",
               "--no-tests=ignore", "-L", f"^({'|'.join(labels)})$",
               "--timeout", str(6 * 3600 if long_run else 300)]  # Of tests that have none of their own.
    if pattern:
        command += ["-R", pattern]
    code = run_logged(command, log, environment)
    text = log.read_text(encoding="utf-8", errors="replace")
    summary = re.search(r"(\d+)% tests passed, (\d+) tests? failed out of (\d+)", text)
    if not summary:
        if "No tests were found" in text and code == 0:
            say(f"ctest {preset}: no test has a label of {', '.join(labels)}")
            return 0, 0
        print(text[-4000:])
        return 0, 1
    failed, total = int(summary.group(2)), int(summary.group(3))
    if failed:
        print_failures(text)
        say(f"ctest {preset}: all of it in {log.relative_to(ROOT)}")
    elif code != 0:
        print(text[-4000:])
        failed += 1
        total += 1
    return total - failed, failed


def print_failures(text, per_test=80, tests=12):
    """Each failed test's output, its beginning and its end, then the list."""
    blocks = re.split(r"(?m)^(?=\s*\d+/\d+ Test\s+#)", text)
    bad = [b for b in blocks if re.match(r"\s*\d+/\d+ Test\s+#.*(\*\*\*|Not Run)", b.split("\n", 1)[0])]
    for block in bad[:tests]:
        lines = block.split("\nThe following tests FAILED")[0].splitlines()
        if len(lines) > per_test:
            lines = lines[:per_test // 2] + ["..."] + lines[-per_test // 2:]
        print("\n".join(line[:500] for line in lines))
    if len(bad) > tests:
        print(f"... and the output of {len(bad) - tests} more failed tests")
    listing = text.find("The following tests FAILED")
    if listing >= 0:
        print(text[listing:listing + 6000])
    sys.stdout.flush()


def git_lines(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line] if done.returncode == 0 else []


def sources(suffixes=(".cc", ".h")):
    """Our C++ files, as paths from the root, sorted."""
    found = []
    for folder in SOURCE_FOLDERS:
        found += [p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file()]
    return sorted(found)


def changed_sources(since=None, suffixes=(".cc", ".h")):
    """Sources that differ from `since` (default: ten commits back), committed or not; the newest commit's first."""
    base = since or "HEAD~10"
    if not git_lines("rev-parse", "--verify", "-q", base):
        return sources(suffixes)  # A young or shallow history: everything is new.
    names = git_lines("diff", "--name-only", "--diff-filter=d", "HEAD")
    names += git_lines("ls-files", "--others", "--exclude-standard")
    names += git_lines("log", "--format=", "--name-only", "--diff-filter=d", f"{base}..HEAD")
    known = {str(p): p for p in sources(suffixes)}
    return [known[name] for name in dict.fromkeys(names) if name in known]
