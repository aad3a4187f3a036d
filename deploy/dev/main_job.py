"""The main job of `./dev run`: checkpoint-job on a running cluster, with a DataNode and then the job itself killed in the middle of a file.

What has to hold: the job's totals equal an independent count; the newest checkpoint is large and has a file of several blocks;
after the dead DataNode came back every block has 3 replicas."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

import house

CLIENT = house.build_folder("release") / "client"
JOB = CLIENT / "examples" / "checkpoint_job" / "checkpoint-job"
CAIRN = CLIENT / "cairn"
COUNT = house.ROOT / "client" / "examples" / "checkpoint_job" / "count_words.py"
INPUT = ["/usr/include"]
KILL_DATANODE_IN, KILL_JOB_IN, CHECKPOINTS = 2, 4, 7
MIB = 1 << 20


class JobFailed(Exception):
    """The job or a check of it failed; the text says what."""


class Job:
    """checkpoint-job as a process, its lines printed as they come."""

    def __init__(self, cluster, share, block_size):
        self.local = cluster.folder / "job"
        self.marker = cluster.folder / "job.paused"
        self.log = cluster.folder / "job.log"
        self.command = [
            str(JOB), "--namenode", cluster.address("cairn"), "--local-directory", str(self.local), "--share", str(share),
            "--checkpoints", str(CHECKPOINTS), "--block-size", str(block_size), "--pause-marker", str(self.marker), "--input", *INPUT]
        self.process = None
        self.printed = 0

    def start(self, pauses=()):
        self.marker.unlink(missing_ok=True)
        command = list(self.command)
        for number in pauses:
            command += ["--pause-in-checkpoint", str(number)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def show(self):
        """Prints what the job wrote since the last call."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        lines = text.splitlines(keepends=True)
        for line in lines[self.printed:]:
            if not line.endswith("\n"):
                break
            house.say("  job | " + line.rstrip())
            self.printed += 1

    def wait(self, for_marker, seconds=1500):
        """Until it pauses or ends; true if it paused."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.show()
            if for_marker and self.marker.exists():
                return True
            if self.process.poll() is not None:
                self.show()
                return False
            time.sleep(0.1)
        self.process.kill()
        raise JobFailed(f"the job did not get on in {seconds} s; its log: {self.log}")

    def must_pause(self, what):
        if not self.wait(for_marker=True):
            raise JobFailed(f"the job ended with {self.process.returncode} before {what}; its log: {self.log}")


def run(cluster, quick):
    share, block_size = (0.12, 8 * MIB) if quick else (1.0, 0)
    started = time.monotonic()
    judge = subprocess.Popen([sys.executable, str(COUNT), "--share", str(share), *INPUT], stdout=subprocess.PIPE, text=True)
    job = Job(cluster, share, block_size)
    try:
        house.say(f"run: the job counts the words of the headers in {' '.join(INPUT)} (part {share:g} of them), {CHECKPOINTS} checkpoints")
        job.start(pauses=[KILL_DATANODE_IN, KILL_JOB_IN])

        job.must_pause("its first pause")
        cluster.kill("datanode2")
        house.say("run: kill -9 datanode2, in the middle of that file; the job goes on")
        job.marker.unlink()

        job.must_pause("its second pause")
        job.process.kill()
        job.process.wait()
        shutil.rmtree(job.local, ignore_errors=True)
        job.marker.unlink()
        house.say("run: kill -9 the job, in the middle of a file; its local directory is deleted; a new one starts")

        job.start()
        job.wait(for_marker=False)
        if job.process.returncode != 0:
            raise JobFailed(f"the job ended with {job.process.returncode}; its log: {job.log}")

        house.say("run: datanode2 comes back")
        cluster.start_process("datanode2")
        cluster.wait_ready("datanode2")
        wait_fully_replicated(cluster)
        check_totals(job, judge)
        check_sizes(job, quick, block_size or 128 * MIB)
        house.say(f"run: all is well after {time.monotonic() - started:.0f} s: totals equal, every block has its replicas")
        return 0
    except JobFailed as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    finally:
        if judge.poll() is None:
            judge.kill()
        if job.process is not None and job.process.poll() is None:
            job.process.kill()


def cluster_report(cluster):
    command = [str(CAIRN), "dfsadmin", "-fs", cluster.address("cairn"), "-report"]
    report = subprocess.run(command, capture_output=True, text=True, check=False)
    if report.returncode != 0:
        raise JobFailed(f"dfsadmin -report failed: {report.stderr.strip()}")
    return report.stdout


def wait_fully_replicated(cluster, seconds=180):
    end = time.monotonic() + seconds
    while True:
        text = cluster_report(cluster)
        counts = {key: int(value) for key, value in re.findall(r"^\s*(Under replicated blocks|Missing blocks): (\d+)", text, re.M)}
        if len(counts) != 2:
            raise JobFailed("dfsadmin -report does not tell the block counts:\n" + text)
        if not any(counts.values()):
            house.say("run: every block has 3 replicas")
            return
        if time.monotonic() > end:
            raise JobFailed(f"after {seconds} s still {counts}")
        time.sleep(0.5)


def check_totals(job, judge):
    expected = judge.communicate(timeout=900)[0].strip()
    found = [line for line in job.log.read_text(encoding="utf-8").splitlines() if line.startswith("totals:")]
    if not expected or found != [expected]:
        raise JobFailed(f"the totals differ: the job says {found}, an independent count '{expected}'")
    house.say(f"run: an independent count agrees: {expected}")


def check_sizes(job, quick, block_size):
    newest = re.findall(r"^checkpoint \d+: .* s, ([\d.]+) MiB, .* largest ([\d.]+) MiB", job.log.read_text(encoding="utf-8"), re.M)[-1]
    total, largest = float(newest[0]), float(newest[1])
    if largest * MIB <= block_size:
        raise JobFailed(f"the newest checkpoint's largest file has {largest} MiB, not more than a block")
    if not quick and total < 256:
        raise JobFailed(f"the newest checkpoint has {total} MiB, less than 256")


if __name__ == "__main__":
    print(f"{pathlib.Path(__file__).name} is used by ./dev run", file=sys.stderr)
    sys.exit(255)
