"""The check that `params` is a legal start for a learner with a mirror map."""

from typing import Any

from jaxtyping import Array, PyTree

from olx.needs import Need


def start_inside(owner: str) -> Need:
    """The need of a learner whose hparams hold a `mirror` and that starts from `params`."""
    demand = "`params` must lie in the domain of the mirror map and have a finite dual"
    remedy = "start inside it, for example at `mirror.to_primal` of zeros"
    return Need("params", _starts, demand, owner, remedy)


def _starts(hparams: Any, params: PyTree, rounds: None) -> Array:
    return hparams.mirror.starts(params)
