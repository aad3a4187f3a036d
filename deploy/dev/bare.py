"""./dev bare: the README's commands on a minimal Debian 12, as root.

A root by mmdebstrap in a temporary folder, a clone of the committed tree in it, and inside a chroot what the README tells a
newcomer: ./dev run (and stop), ./dev test; they install what is missing. The network is this machine's, for Debian's packages
only; names and apt's sources are copied from here. Ends 0 if every command did."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import house

COMMANDS = ("./dev run", "./dev stop", "./dev test")
MOUNTS = (("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev/shm"), ("devpts", "dev/pts"))


def sh(command, **options):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **options)


def make_root(root):
    if shutil.which("mmdebstrap") is None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        sh(["apt-get", "install", "-qq", "-y", "--no-install-recommends", "mmdebstrap"], env=environment, stdout=subprocess.DEVNULL)
    # apt's own settings of this machine (mirrors, proxies) hold inside as well.
    sources = [p for p in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
               if p.is_file() and p.suffix in (".list", ".sources") and p.stat().st_size > 0]
    sh(["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--include=ca-certificates", "bookworm", str(root),
        *map(str, sources)])
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    for path in pathlib.Path("/etc/apt/apt.conf.d").glob("*"):
        if path.is_file() and not path.name.startswith("docker"):
            shutil.copy(path, root / "etc/apt/apt.conf.d" / path.name)


def mount(root):
    for kind, place in MOUNTS:
        (root / place).mkdir(parents=True, exist_ok=True)
        if place == "dev/pts" or not os.path.ismount(root / place):
            sh(["mount", "-t", kind, kind, str(root / place)])


def unmount(root):
    for _, place in reversed(MOUNTS):
        if os.path.ismount(root / place):
            subprocess.run(["umount", "-l", str(root / place)], check=False)


def main():
    parser = argparse.ArgumentParser(prog="./dev bare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where the root is made; default: a temporary folder, removed at the end")
    parser.add_argument("--command", action="append", help=f"instead of: {', '.join(COMMANDS)}")
    options = parser.parse_args()
    if os.geteuid() != 0:
        house.say("bare: needs root, for the chroot")
        return 1

    begin = time.monotonic()
    folder = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="cairn-bare."))
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / "root"
    failed = 0
    try:
        make_root(root)
        sh(["git", "clone", "-q", "--no-hardlinks", str(house.ROOT), str(root / "cairn")])
        mount(root)
        for command in options.command or COMMANDS:
            house.say(f"=== {command}")
            stage = time.monotonic()
            code = subprocess.run(
                ["chroot", str(root), "/usr/bin/env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                 "CI=true", "bash", "-c", f"cd /cairn && {command}"], stdin=subprocess.DEVNULL, check=False).returncode
            house.say(f"=== {command}: {'ok' if code == 0 else f'exit code {code}'}, {(time.monotonic() - stage) / 60:.1f} minutes")
            failed += code != 0
    finally:
        unmount(root)
        if not options.folder and not any(os.path.ismount(root / place) for _, place in MOUNTS):
            shutil.rmtree(folder, ignore_errors=True)
    house.say(f"bare: {'FAILED' if failed else 'ok'} in {(time.monotonic() - begin) / 60:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
