"""What a model has learned after its run, beside the result, so that no run overwrites it.

    learned/<model>/record.json      which state is the newest, after how many rounds
    learned/<model>/<rounds>.olx     that state, with the learner; `olx.load` reads it
    learned/<model>/<rounds>.rows    the rows that a service has learned since (`rows_log`)

`models/<model>.olx` stays as its run left it. `olx predict`, `olx learn` and `olx serve` take the
newest state. The record holds a digest of the model that it started from: if a later `olx run` has
made another one, what was learned belongs to a model that is no more, and it is refused by name
until the folder is moved away. A service that is stopped saves its rows; those of one that was
killed are in its log, and are played by the next `olx serve` or `olx learn`.

A state is written first, then the record that names it, then the log after it is begun, and only
then older files go. So at every moment the record names a complete state, and the log that belongs
to it holds all later rows. One process at a time may learn: it locks the folder.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jaxtyping import PyTree

import olx
from olx import _archive as archive
from olx._refusal import RefusedFile, own_name
from olx.core import Learner
from olx.engine.checkpoint import lock_folder
from olx.lab import store
from olx.lab.drift import ROUNDS
from olx.lab.rows_log import Entry, RowsLog, entries, sync_folder

Tree = dict[str, Any]
_RECORD = "record.json"
_KEPT = ("rounds", "learned", "total", "recent")  # numbers of a `Progress`


class Progress(NamedTuple):
    """A model, and what it has paid since its run."""

    state: PyTree
    rounds: int  # in all
    learned: int = 0  # of them after the run
    total: float = 0.0  # the loss of these
    recent: tuple[float, ...] = ()  # the newest losses

    def after(self, state: PyTree, losses: Sequence[float]) -> "Progress":
        """The same after more rounds."""
        count, total = len(losses), self.total
        for paid in losses:  # in order, so that a sum does not depend on the requests
            total += paid
        recent = (*self.recent, *losses)[-ROUNDS:]
        return Progress(state, self.rounds + count, self.learned + count, total, recent)


def load_model(place: Path, precision: str, trust: Sequence[str]) -> tuple[Learner, PyTree]:
    """The learner and the state in a file of a model."""
    with jax.enable_x64(precision == "float64"):
        try:
            return olx.load(place, trust=tuple(trust))
        except ValueError as error:
            hint = "If another version of olx made this result, run its config again."
            raise ValueError(f"{error} {hint}") from error


def newest_record(folder: Path, about: Tree) -> tuple[Tree, Path]:
    """What a model is now, and the file of its state.

    Refuses a model that was learned on from one that has been replaced.
    """
    place, record = _place(folder, about["file"]), _record(folder, about["file"])
    if record is None:
        return about, _model(folder, about["file"])
    if record["base"] != _digest(_model(folder, about["file"])):
        raise ValueError(
            f"{place} has learned {record['learned']:,} rows or more from a model that `olx "
            "run` has replaced since; move this folder away to use the new model, and learn these "
            "rows again with it."
        )
    return about | {"rounds": record["rounds"], "learned": record}, place / record["state"]


def summary_of(folder: Path, file: str) -> str:
    """What a run says of a model that has learned more; empty if it has not."""
    place, record = _place(folder, file), _record(folder, file)
    if record is None:
        return ""
    count = f"{record['learned']:,} rows{' or more' * any(place.glob('*.rows'))}"
    where = f"has learned {count} since its run, in {place}"
    if record["base"] == _digest(_model(folder, file)):
        return f"{where}; they are kept, and `olx predict` uses them."
    return f"{where}, from a model that is now replaced; move this folder away to use the new one."


class LearnedFolder:
    """The folder of a model, for the only process that may learn now."""

    def __init__(self, folder: Path, about: Tree, learner: Learner, progress: Progress):
        self.path, self.learner = _place(folder, about["file"]), learner
        self.base = _digest(_model(folder, about["file"]))
        self.saved = progress
        self._log: RowsLog | None = None
        self._unsure = False  # whether the record may name a state that the log does not follow

    def entries(self) -> Iterator[Entry]:
        """The rows that were learned after the saved state."""
        return entries(self._log_path())

    def append(self, rounds: int, requests: list[list[Tree]]) -> None:
        """Make rows durable that follow `rounds` rounds."""
        if self._unsure:
            raise RefusedFile(
                f"the state could not be saved in {self.path}, so nothing is learned until the "
                "service is started again."
            )
        if self._log is None:
            if not (self.path / _RECORD).is_file():  # says what the rows of the log follow on
                self._write(self.saved)
            self._log = RowsLog(self._log_path())
        self._log.append(Entry(rounds, requests))

    def save(self, progress: Progress) -> None:
        """Store a state; the log of rows before it goes."""
        if progress.rounds > self.saved.rounds:
            self._write(progress)

    def _write(self, progress: Progress) -> None:
        file, before = f"{progress.rounds}.olx", f"{self.saved.rounds}.olx"
        olx.save(self.path / file, self.learner, progress.state)
        sync_folder(self.path)
        kept = {name: getattr(progress, name) for name in _KEPT}
        record = {**kept, "state": file, "base": self.base}
        self._unsure = True
        archive.write_json(self.path / _RECORD, record)
        sync_folder(self.path)
        self.close()
        self.saved, self._unsure = progress, False
        for path in (*self.path.glob("*.rows"), *self.path.glob("*.olx")):
            if path.name not in (file, before):  # a reader may just open the state before
                path.unlink()

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
        self._log = None

    def _log_path(self) -> Path:
        return self.path / f"{self.saved.rounds}.rows"


def progress_of(about: Tree, state: PyTree) -> Progress:
    """The numbers of a model as `newest_record` gives it."""
    record = about.get("learned")
    if record is None:
        return Progress(state, about["rounds"])
    return Progress(
        state, record["rounds"], record["learned"], record["total"], tuple(record["recent"])
    )


@contextlib.contextmanager
def lock(folder: Path, file: str) -> Iterator[None]:
    """Keep other processes from learning with a model."""
    with own_name("learn"), lock_folder(_place(folder, file), "learned model"):
        archive.remove_drafts(_place(folder, file))
        yield


def _place(folder: Path, file: str) -> Path:
    return folder / "learned" / file


def _model(folder: Path, file: str) -> Path:
    return folder / "models" / f"{file}.olx"


def _record(folder: Path, file: str) -> Tree | None:
    place = _place(folder, file)
    if not (place / _RECORD).is_file():
        return None
    record = store.text(place, _RECORD, json.loads)
    wanted = {"state", "base", *_KEPT}
    rounds = record.get("rounds") if isinstance(record, dict) else None
    known = isinstance(record, dict) and set(record) == wanted and type(rounds) is int
    if not known or record["state"] != f"{rounds}.olx":  # no file of another folder
        raise ValueError(f"{place / _RECORD} is not what `olx learn` writes; move {place} away.")
    return record


def _digest(path: Path) -> str:
    """The digest of a model; empty if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
