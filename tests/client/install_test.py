#!/usr/bin/env python3
"""Builds the README's program outside of the tree, against what `cmake --install` gives.

Usage: install_test.py SOURCE_DIR BUILD_DIR COMPILER

Once by find_package(cairn), once by pkg-config; then runs both. No cluster is needed: an address that is none is refused at once,
which shows that the program links and loads."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, COMPILER = (pathlib.Path(a).resolve() if i < 2 else a for i, a in enumerate(sys.argv[1:4]))

CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(outside CXX)
find_package(cairn REQUIRED)
add_executable(program program.cc)
target_link_libraries(program PRIVATE cairn::cairn)
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cairn-install-")
        cls.root = pathlib.Path(cls.folder.name)
        cls.prefix = cls.root / "prefix"
        run("cmake", "--install", BUILD, "--component", "client", "--prefix", cls.prefix)
        cls.libraries = next(p.parent for p in cls.prefix.rglob("libcairn.so"))
        cls.program = (SOURCE / "client/examples/readme_program.cc").read_text()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check_runs(self, program):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.libraries))
        done = subprocess.run([program, "http://nowhere"], capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the address of a cluster is cairn://host[:port]", done.stderr)

    def test_readme_shows_the_program(self):
        readme = (SOURCE / "README.md").read_text()
        self.assertIn(self.program.strip(), re.findall(r"```cpp\n(.*?)\n```", readme, re.S))

    def test_find_package(self):
        folder = self.root / "cmake"
        folder.mkdir()
        (folder / "program.cc").write_text(self.program)
        (folder / "CMakeLists.txt").write_text(CMAKE_LISTS)
        run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", folder / "build")
        self.check_runs(folder / "build/program")

    def test_pkg_config(self):
        folder = self.root / "pkg-config"
        folder.mkdir()
        (folder / "program.cc").write_text(self.program)
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "cairn", env=environment).split()
        run(COMPILER, "-std=c++20", folder / "program.cc", "-o", folder / "program", *flags)
        self.check_runs(folder / "program")

    def test_headers_need_no_others_of_ours(self):
        for header in self.prefix.rglob("include/cairn/*.h"):
            for name in re.findall(r'#include "([^"]+)"', header.read_text()):
                self.assertRegex(name, r"^(cairn/(?!.*\.pb\.h)|absl/)", f"{header} includes {name}")

    def test_command_line_is_installed(self):
        program = next(self.prefix.rglob("bin/cairn"))
        self.assertRegex(run(program, "--version"), r"^Cairn \d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
