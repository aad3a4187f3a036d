#!/usr/bin/env python3
"""Counts what checkpoint-job counts, with no code of it: the judge of its totals.

Usage: count_words.py [--share S] DIRECTORY...
"""
import argparse
import collections
import os
import re
import zlib

EXTENSIONS = (".h", ".hh", ".hpp", ".hxx", ".ipp", ".tcc")
WORD = re.compile(rb"[A-Za-z0-9_]+")


def header_files(roots):
    for root in roots:
        for directory, _, names in os.walk(root):
            for name in names:
                path = os.path.join(directory, name)
                if os.path.splitext(name)[1] in EXTENSIONS and not os.path.islink(path) and os.path.isfile(path):
                    yield os.fsencode(path)


def every(paths, share):
    due = 0.0
    for path in paths:
        due += share
        if due < 1 - 1e-9:
            continue
        due -= 1
        yield path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("roots", nargs="+")
    arguments = parser.parse_args()
    entries = words = digest = 0
    for path in every(sorted(header_files(arguments.roots)), arguments.share):
        with open(path, "rb") as file:
            counts = collections.Counter(WORD.findall(file.read()))
        for word, count in counts.items():
            digest += zlib.crc32(b"%s\0%s\t%d" % (word, path, count))
        entries += len(counts)
        words += sum(counts.values())
    print(f"totals: entries={entries} words={words} digest={digest % 2**64}")


main()
