"""Check before the first job that learners, losses and data fit each other."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from olx._refusal import own_name
from olx.core import Learner, Rounds
from olx.engine.game import first_state
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Data, Experiment
from olx.lab.plan import Plan, first_decision
from olx.streams.checks import judge, needs_of


def check_rows(experiment: Experiment, entry: Data, data: Dataset) -> None:
    """Refuse numbers too large for the precision, and protocols that leave a part without rows."""
    most = np.finfo(experiment.precision).max
    parts: list[tuple[str, Any]] = [("feature", part) for part in data.parts]
    parts.append(("outcome", data.outcome))
    for what, array in parts:
        if array is None or np.size(array) == 0:
            continue
        numbers = array.data if scipy.sparse.issparse(array) else array
        if abs(numbers).max() > most:
            whole = array.toarray() if scipy.sparse.issparse(array) else array
            row, *column = np.argwhere(abs(whole) > most)[0].tolist()
            where = f"row {row}" + (f", column {column[0]}" if column else "")
            raise ConfigError(
                f"data: {data.name} holds the {what} {whole[(row, *column)]:g} at {where}, too "
                f'large for {experiment.precision}; scale it, or give precision = "float64".'
            )
    length = min(len(data), entry.rows or len(data))
    cut = {"half": length // 2, "split": training_rows(experiment, data, length)}
    if not 0 < cut.get(experiment.protocol, 1) < length + (experiment.protocol == "progressive"):
        raise ConfigError(
            f"protocol: {experiment.protocol} leaves a part of {data.name} without rows; it has "
            f"{length} rows, test = {experiment.test}."
        )


def training_rows(experiment: Experiment, data: Dataset, length: int | None = None) -> int:
    """The number of rows on which the protocol `split` learns."""
    length = len(data) if length is None else length
    return data.train or round(length * (1 - experiment.test))


def check_fit(plan: Plan, data: Dataset, loss: Any, rounds: Rounds) -> None:
    """Refuse a learner that cannot play on the data, or not from its first decision."""
    start = first_decision(plan, data, np.float32)
    for part in plan.parts:
        learner = part.first()
        _check_decision(plan, data, learner, start)
        try:
            with own_name(f"{plan.where} on {data.name}"):
                judge(needs_of(learner, loss), start, rounds)
                first_state(learner, start)
        except (TypeError, ValueError) as error:
            hint = " In a config that is first = a number, or uniform."
            raise ConfigError(f"{error}{hint if 'params' in str(error) else ''}") from error


def _check_decision(plan: Plan, data: Dataset, learner: Learner, start: Any) -> None:
    decision = data.task.decision
    wanted = decision.shape(data)
    try:
        action = jax.eval_shape(
            lambda x: learner.predict(learner.init(start), x), data.row(jnp.float32)
        )
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise ConfigError(f"{plan.where} does not fit {data.name}: {said}") from error
    shape = getattr(action, "shape", None)
    if shape != wanted:
        hint = "" if decision.lift is None else "; add linear = true"
        raise ConfigError(
            f"{plan.where}: {plan.label} decides on {_words(shape)}, {data.name} asks for "
            f"{_words(wanted)}{hint}."
        )


def _words(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "a tree of arrays"
    return "a score" if shape == () else f"a point of {' x '.join(map(str, shape))} numbers"
