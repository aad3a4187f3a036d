"""./dev format [--all]: clang-format-19 on changed C++ files, or on all."""

import argparse
import subprocess
import sys

import house


def main():
    parser = argparse.ArgumentParser(prog="./dev format", description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("file", nargs="*")
    options = parser.parse_args()
    files = options.file or (house.sources() if options.all else house.changed_sources("HEAD"))
    if files:
        subprocess.run(["clang-format-19", "-i", *map(str, files)], cwd=house.ROOT, check=True)
    house.say(f"format: {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
