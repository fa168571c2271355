"""Interrupt runs with every kind of state, damage or change their files, and resume them.

    python -m benchmarks.resume [--kills 120] [--corruptions 240] [--changes 240] [--seed 0]

Each case must give the same bits as an uninterrupted run, or be refused by name. All else (a wrong
number, an unexpected error, a crash) counts as failed and is shown.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import resume_changes
from benchmarks.resume_jobs import JOBS, PIECES, BrokenOff, Job, bits, play
from olx.engine import tuning

tuning.CHUNK_ROUNDS = 64  # rounds per chunk, so that short streams have many chunks
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def main() -> int | None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__)
    for name, count in (("kills", 120), ("corruptions", 240), ("changes", 240), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kills = killed(place / "killed", chance, asked.kills)
        if kills is None:
            return None  # a child process that was not killed in time
        tables = {
            "killed": finished(place / "killed", kills),
            "corrupted": tried(place, chance, asked.corruptions, resume_changes.corrupted),
            "changed": tried(place, chance, asked.changes, resume_changes.changed),
        }
    return show(tables)


def killed(place: Path, chance: random.Random, kills: int) -> collections.Counter | None:
    """Kill processes at random moments after a save; count the kills per job.

    The processes are forks of this one, which has started no thread; returns None in a fork.
    """
    done, names = 0, list(JOBS)
    ended, times = collections.Counter(), collections.Counter()
    while done < kills and names:
        name = names[done % len(names)]
        there = place / name
        before = len(list(there.glob("steps/*.step")))
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            play(JOBS[name], there)
            return None
        until = time.monotonic() + 120
        while (
            time.monotonic() < until
            and os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        ):
            if len(list(there.glob("steps/*.step"))) > before:
                break
            time.sleep(0.0005)
        time.sleep(chance.uniform(0, 0.02))
        number = chance.choice(SIGNALS)
        os.kill(process, number)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        ended[f"{signal.Signals(number).name}: {status}"] += 1
        if status == 0:
            names.remove(name)  # it finished before the signal
            continue
        done, times[name] = done + 1, times[name] + 1
        print(f"\rkilled {done}", end="", flush=True)
    print("\rhow the processes ended:", dict(ended))
    return times


def finished(place: Path, kills: collections.Counter) -> collections.Counter:
    """Resume all killed jobs to their end."""
    seen = collections.Counter()
    for name, times in kills.items():
        job = JOBS[name]
        seen[verdict(f"killed: {name}", lambda j=job, n=name: play(j, place / n), job)] += times
    return seen


def tried(place: Path, chance: random.Random, count: int, spoil: Callable) -> collections.Counter:
    """Damage or change an interrupted job with `spoil` and resume it, `count` times in all."""
    seen, names = collections.Counter(), list(JOBS)
    for i in range(count):
        name, other = names[i % len(names)], chance.choice(names)
        folders = [interrupted(place / "saved", each) for each in (name, other)]
        copy = place / "copy"
        shutil.copytree(folders[0], copy)
        what, job = spoil(chance, JOBS[name], copy, folders[1])
        seen[verdict(f"{name}: {what}", lambda job=job: play(job, place / "copy"), job)] += 1
        shutil.rmtree(copy)
        print(f"\r{i + 1}", end="", flush=True)
    print("\r", end="")
    return seen


def interrupted(place: Path, name: str) -> Path:
    """The folder of a run that was interrupted half way."""
    if not (place / name).exists():
        with contextlib.suppress(BrokenOff):
            play(JOBS[name], place / name, saves=PIECES // 2)
    return place / name


def _whole(job: Job, known: dict[str, list[bytes]] = {}) -> list[bytes]:  # noqa: B006
    """The bits of an uninterrupted run; cached for unchanged jobs."""
    name = next((name for name, one in JOBS.items() if one is job), None)
    if name is None:
        return bits(play(job))
    if name not in known:
        known[name] = bits(play(job))
    return known[name]


def verdict(what: str, resume: Callable, job: Job) -> str:
    """Compare the resumed run with an uninterrupted run of `job`."""
    try:
        seen = bits(resume())
    except (ValueError, RuntimeError, TypeError, OSError) as error:
        if str(error).startswith(f"{job.driver}: "):
            return "refused"
        print(f"FAILED {what}: {type(error).__name__}: {str(error)[:200]}")
        return "failed"
    wanted = _whole(job)
    if seen == wanted:
        return "resumed to the bit"
    print(f"FAILED {what}: other numbers")
    return "failed"


def show(tables: dict[str, collections.Counter]) -> int:
    print(f"{'':12}{'resumed to the bit':>20}{'refused by name':>18}{'failed':>9}")
    for name, seen in tables.items():
        row = seen["resumed to the bit"], seen["refused"], seen["failed"]
        print(f"{name:12}{row[0]:>20}{row[1]:>18}{row[2]:>9}")
    return int(any(seen["failed"] for seen in tables.values()))


if __name__ == "__main__":
    sys.exit(main())
