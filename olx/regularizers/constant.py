r"""The regularizer that does not change, $f_t = f$."""

from jaxtyping import PyTree

from olx import _check as check
from olx.core import Feedback, Process
from olx.mirrors.base import MirrorMap


def constant(mirror: MirrorMap) -> Process:
    check.instance("constant", "mirror", mirror, MirrorMap)
    return Process(mirror, init, update, at, separable=mirror.separable)


def as_regularizer(owner: str, regularizer: MirrorMap | Process) -> Process:
    """A mirror map as the regularizer that does not change; a regularizer as it is."""
    if isinstance(regularizer, MirrorMap):
        return constant(regularizer)
    if not isinstance(regularizer, Process):
        kind = type(regularizer).__name__
        raise TypeError(
            f"{owner}: `regularizer` must be a MirrorMap or a Process made by olx.regularizers, "
            f"got {kind}."
        )
    return regularizer


def init(mirror: MirrorMap, params: PyTree) -> None:
    return None


def update(mirror: MirrorMap, stats: None, feedback: Feedback) -> None:
    return None


def at(mirror: MirrorMap, stats: None, context: PyTree) -> MirrorMap:
    return mirror
