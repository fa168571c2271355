"""A model that predicts and learns, for several threads: what is behind `olx serve`.

One thread at a time learns. A request to learn is put into a queue; the thread that gets the lock
plays all that are waiting, one after the other, writes their rows to the log with one call, and
tells all of them once the disk has them. So each waits for one flush at most beside its own, and no
row is learned for a client before it is durable. A request whose rows are refused changes nothing.

Predictions take the newest durable state, which does not change, and wait for no one.
"""

import math
import threading
from typing import Any, NamedTuple

import jax
import numpy as np

import olx
from olx._refusal import RefusedValue
from olx.lab import drift
from olx.lab.data.json_rows import JsonRows, Row
from olx.lab.learn import OpenModel, newest_progress, step_by_step
from olx.lab.learned_models import Progress
from olx.lab.models import prediction_columns

Tree = dict[str, Any]


class Closed(Exception):
    """The service no longer learns; the text says why."""


class _Request:
    """Rows to learn, and later the answer."""

    def __init__(self, rows: list[Row]):
        self.rows = rows
        self.answer: Tree | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.answer is not None or self.error is not None


class Service:
    """The operations of a served model.

    save_every: the state is stored after this many rounds.
    allow_unknown: whether a word that was in no row before becomes zeros; False refuses it.
    """

    def __init__(self, model: OpenModel, save_every: int = 1000, allow_unknown: bool = False):
        self._model, self._every = model, save_every
        self._closed = self._trouble = ""
        self._reader = JsonRows(model.table, model.about["binarize"], allow_unknown)
        self._writer, self._queue_lock = threading.Lock(), threading.Lock()
        self._queue: list[_Request] = []
        self.newest = newest_progress(model)
        self.replayed = self.newest.rounds - model.folder.saved.rounds

    def predict(self, rows: list[Row]) -> Tree:
        """What the model says about some rows, as `olx predict` does."""
        about, progress = self._model.about, self.newest
        with self._wide():
            x = self._model.context(self._reader.contexts(rows))
            actions = olx.predict(self._model.learner, progress.state, x)
            columns = prediction_columns(self._model.table, about["loss"], actions)
        cells = [*zip(*(np.asarray(each).tolist() for each in columns.values()), strict=True)]
        for i, row in enumerate(cells):
            if odd := [each for each in row if isinstance(each, float) and not math.isfinite(each)]:
                raise RefusedValue(
                    f"the prediction of row {i} is {odd[0]}, which JSON cannot hold; the row or "
                    "the weights of the model are too large."
                )
        found = [dict(zip(columns, row, strict=True)) for row in cells]
        if name := self._model.table.id:
            found = [{name: row.get(name)} | own for row, own in zip(rows, found, strict=True)]
        return {"rounds": progress.rounds, "predictions": found}

    def learn(self, rows: list[Row]) -> Tree:
        """Learn some rows, all of them or none; they are durable when this returns."""
        request = _Request(rows)
        with self._queue_lock:
            self._queue.append(request)
        with self._writer:
            if not request.is_done:
                with self._queue_lock:
                    waiting, self._queue = self._queue, []
                self._learn_all(waiting)
        if request.answer is None:
            raise request.error or Closed("the service stopped before the rows were learned.")
        return request.answer

    def save(self) -> Tree:
        """Store the newest state."""
        with self._writer:
            self._model.folder.save(self.newest)
            return {"rounds": self.newest.rounds}

    def close(self) -> None:
        """Store the newest state and learn no more."""
        with self._writer:
            self._closed = "the service is being stopped; send the rows again when it is back."
            self._model.folder.save(self.newest)

    def health(self) -> Tree:
        """Which model this is, how far it is, and whether its loss has risen."""
        about, progress = self._model.about, self.newest
        past = drift.Losses(**about.get("past", {}).get("last", drift.losses_of([])._asdict()))
        alarm, said = drift.judgement(past, drift.losses_of(progress.recent))
        return {
            "status": self._closed or self._trouble or "ok",
            "version": olx.__version__,
            "model": {key: about[key] for key in ("dataset", "learner", "hyperparameters")},
            "rounds": progress.rounds,
            "saved_rounds": self._model.folder.saved.rounds,
            "learned": progress.learned,
            "mean_loss": progress.total / progress.learned if progress.learned else None,
            "drift": alarm,
            "judgement": said,
        }

    def _learn_all(self, waiting: list[_Request]) -> None:
        """Play requests in order, make them durable together, and then answer all of them."""
        try:
            played = self._play(waiting)
            if played:
                self._model.folder.append(self.newest.rounds, [one.rows for one, *_ in played])
                self.newest = played[-1].progress
        except Exception as error:  # each client must be told, not only that of this thread
            for request in waiting:
                request.error = request.error or error
            return
        for request, progress, losses in played:
            mean = sum(losses) / len(losses)
            request.answer = {"rounds": progress.rounds, "losses": losses, "mean_loss": mean}
        if self.newest.rounds - self._model.folder.saved.rounds >= self._every:
            try:
                self._model.folder.save(self.newest)
                self._trouble = ""
            except OSError as error:  # the log still has all rows
                self._trouble = f"the state cannot be saved: {error}"

    def _play(self, waiting: list[_Request]) -> "list[_Played]":
        progress, played = self.newest, []
        with self._wide():
            for request in waiting:
                try:
                    if self._closed:
                        raise Closed(self._closed)
                    found = step_by_step(self._model, self._reader, progress, request.rows)
                except Exception as error:  # this client's rows, and nobody else's
                    request.error = error
                    continue
                progress = found[0]
                played.append(_Played(request, *found))
        return played

    def _wide(self) -> Any:
        return jax.enable_x64(self._model.about["precision"] == "float64")


class _Played(NamedTuple):
    """A request that was played."""

    request: _Request
    progress: Progress
    losses: list[float]
