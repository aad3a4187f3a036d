"""./dev build [PRESET] [TARGET...]: configures and builds one preset."""

import argparse
import sys

import house


def main():
    parser = argparse.ArgumentParser(prog="./dev build", description=__doc__)
    parser.add_argument("preset", nargs="?", default="release", choices=house.PRESETS)
    parser.add_argument("target", nargs="*")
    options = parser.parse_args()
    return 0 if house.build(options.preset, options.target) else 1


if __name__ == "__main__":
    sys.exit(main())
