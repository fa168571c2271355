"""Hand the jobs of a run to the workers of an executor.

A job that is lost with its worker is handed out again. What a worker has stored is kept, whatever
happens to the run.
"""

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from olx.lab import worker
from olx.lab.config import ConfigError
from olx.lab.executors import Hands
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job
from olx.lab.opening import note_environment
from olx.lab.stopping import Held

TRIES = 3  # how often a job is handed out, if its worker is lost each time


class JobFailed(RuntimeError):
    """A job failed on a worker."""


class WorkerLost(OSError):
    """The worker of a job was lost too often."""


def hand_out(
    hands: Hands,
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    signals: Held,
    say: Callable[[str], None],
) -> Generator[float, None, None]:
    """Have all jobs played; gives the seconds of each as it is done."""
    folder = folder.resolve()
    digest = worker.write(folder, experiment, jobs)
    queue, tries = deque(job.name for job in jobs), Counter[str]()
    waiting: dict[str, Any] = {}
    environments: list[dict[str, Any]] = []  # of the workers
    try:
        while queue or waiting:
            if queue and len(waiting) <= hands.refill:
                with hands.together():
                    while queue and len(waiting) < hands.most and signals.by is None:
                        name = queue.popleft()
                        given = str(folder), digest, name, tries[name]
                        waiting[name] = hands.submit(worker.play, *given)
            done = [name for name, future in waiting.items() if future.done()]
            for name in done:
                outcome = _outcome(name, waiting.pop(name), tries)
                if outcome is None:
                    say(f"the worker of {name} was lost; the job is played again.")
                    queue.append(name)
                    continue
                if outcome.environment and outcome.environment not in environments:
                    environments.append(outcome.environment)
                    note_environment(folder, outcome.environment)
                yield outcome.seconds
            signals.stop_here()
            if not done:
                time.sleep(hands.pause)
    finally:
        for future in waiting.values():
            with contextlib.suppress(Exception):  # the first error is being raised already
                future.cancel()
        worker.remove(folder)


def _outcome(name: str, future: Any, tries: Counter[str]) -> worker.Outcome | None:
    """What came of a job that is done; None if its worker was lost."""
    try:
        outcome = worker.Outcome(*future.result())
    except Exception as error:  # a job that fails says so in its outcome
        tries[name] += 1
        if tries[name] < TRIES:
            return None
        said = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise WorkerLost(
            f"executor: the worker of {name} was lost {TRIES} times, the last time with {said}. "
            "Finished jobs are kept; run the same command again to continue."
        ) from error
    if outcome.refused:
        raise ConfigError(outcome.refused)
    if outcome.failed:
        raise JobFailed(f"executor: {name} failed {outcome.failed}")
    return outcome
