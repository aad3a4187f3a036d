"""./dev lint [--all] [--since REV] [--minutes M]: clang 19's warnings (thread safety among them) and clang-tidy on changed sources, and
their format.

clang-tidy runs the compiler itself, with the flags of the clang preset, so one pass does both. A changed header is looked at through
a source that includes it. With --minutes, what was not reached in time is named; newest changes come first."""

import argparse
import concurrent.futures
import json
import re
import subprocess
import sys
import time

import house

# Formatting differences are printed and counted; they fail the lint once this is True (after one ./dev format --all).
FORMAT_IS_AN_ERROR = False


def prepare():
    """The clang preset configured and the protocol headers generated. False if that failed."""
    log = house.build_folder("clang") / "build.log"
    if house.run_logged(["cmake", "--preset", "clang"], log) != 0:
        house.print_errors(log)
        return False
    ninja = (house.build_folder("clang") / "build.ninja").read_text(encoding="utf-8")
    headers = sorted(set(re.findall(r"^build (\S+\.pb\.cc)(?=[ :])", ninja, re.M)))
    headers = [h for h in headers if not h.startswith("/")]
    if headers and house.run_logged(["ninja", "-C", "build/clang", *headers], log, append=True) != 0:
        house.print_errors(log)
        return False
    return True


def compiled_sources():
    database = json.loads((house.build_folder("clang") / "compile_commands.json").read_text(encoding="utf-8"))
    root = str(house.ROOT) + "/"
    return {entry["file"].removeprefix(root) for entry in database}


def includers():
    """Header (as included) -> the sources that include it."""
    found = {}
    for source in house.sources((".cc",)):
        for header in re.findall(r'^#include "([^"]+)"', (house.ROOT / source).read_text(encoding="utf-8"), re.M):
            found.setdefault(header, []).append(str(source))
    return found


def to_check(files, compiled):
    """The translation units through which `files` are seen, in that order; and the headers that none includes."""
    by_header = includers()
    chosen, unseen = {}, []
    for path in map(str, files):
        if path.endswith(".cc"):
            if path in compiled:
                chosen[path] = None
            continue
        own = path.removesuffix(".h") + ".cc"
        public = path.removeprefix("client/include/")
        users = [s for s in [own, *by_header.get(path, []), *by_header.get(public, [])] if s in compiled]
        if users:
            chosen[users[0]] = None
        else:
            unseen.append(path)
    return list(chosen), unseen


def tidy(source, deadline):
    """clang-tidy's complaints about one source; None if there was no time."""
    if time.monotonic() > deadline:
        return None
    done = subprocess.run(
        ["clang-tidy-19", "-p", "build/clang", "--quiet", "--warnings-as-errors=*",
         f"--header-filter={re.escape(str(house.ROOT))}/({'|'.join(house.SOURCE_FOLDERS)})/.*", source],
        cwd=house.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or done.stderr.strip() or f"{source}: clang-tidy-19 ended with {done.returncode}"


def check_format(files):
    """Files whose format differs from .clang-format."""
    done = subprocess.run(["clang-format-19", "--dry-run", *map(str, files)], cwd=house.ROOT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be clang-formatted", done.stderr, re.M)))


def main():
    parser = argparse.ArgumentParser(prog="./dev lint", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--since", help="changed since this commit; default: ten commits back")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("file", nargs="*")
    options = parser.parse_args()

    files = options.file or (house.sources() if options.all else house.changed_sources(options.since))
    if not files:
        house.say("lint: nothing changed")
        return 0
    if not prepare():
        house.say("lint: FAILED, the clang preset does not configure")
        return 1
    sources, unseen = to_check(files, compiled_sources())
    deadline = time.monotonic() + options.minutes * 60
    bad, late = [], []
    said = set()
    with concurrent.futures.ThreadPoolExecutor(house.JOBS) as pool:
        for source, complaint in zip(sources, pool.map(lambda s: tidy(s, deadline), sources)):
            if complaint is None:
                late.append(source)
            elif complaint:
                bad.append(source)
                if complaint not in said:  # A header's complaint comes once for each source that includes it.
                    said.add(complaint)
                    house.say(complaint)
    for name in unseen:
        house.say(f"lint: {name}: no source includes it yet, not looked at")
    if late:
        house.say(f"lint: out of time, not looked at: {' '.join(late)}")
    unformatted = check_format(files)
    if unformatted:
        house.say(f"lint: {len(unformatted)} files differ from .clang-format; ./dev format mends them"
                  + ("" if FORMAT_IS_AN_ERROR else " (not an error yet)"))
        if FORMAT_IS_AN_ERROR:
            house.say("\n".join(unformatted))
    failed = bool(bad) or (FORMAT_IS_AN_ERROR and bool(unformatted))
    house.say(f"lint: {len(files)} changed files through {len(sources) - len(late)} sources, {len(bad)} with complaints"
              + (": FAILED" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
