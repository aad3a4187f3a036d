"""./dev format [--all] [--long]: clang-format-19 on changed C++ files, or on all; with --long only the statements and comments that are
wider than a line may be."""

import argparse
import subprocess
import sys

import house


STYLE_OF_LONG_LINES = "{BasedOnStyle: InheritParentConfig, ReflowComments: true}"


def break_long_lines(path):
    """True if there was one."""
    lines = (house.ROOT / path).read_text(encoding="utf-8").splitlines()
    ranges = [f"--lines={number}:{number}" for number, line in enumerate(lines, 1) if len(line) > house.LONGEST_LINE]
    if ranges:
        subprocess.run(["clang-format-19", "-i", f"--style={STYLE_OF_LONG_LINES}", *ranges, str(path)], cwd=house.ROOT, check=True)
    return bool(ranges)


def main():
    parser = argparse.ArgumentParser(prog="./dev format", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("file", nargs="*")
    options = parser.parse_args()
    files = options.file or (house.sources() if options.all else house.changed_sources("HEAD"))
    if options.long:
        house.say(f"format: {sum(break_long_lines(path) for path in files)} files had lines over {house.LONGEST_LINE} columns")
        return 0
    if files:
        subprocess.run(["clang-format-19", "-i", *map(str, files)], cwd=house.ROOT, check=True)
    house.say(f"format: {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
