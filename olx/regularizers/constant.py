r"""The constant regularizer, $f_t = f$."""

from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType, public
from olx.core import REGULARIZER, Feedback, Process
from olx.mirrors.base import MirrorMap


@public
def constant(mirror: MirrorMap) -> Process:
    check.instance("mirror", mirror, MirrorMap)
    return Process(mirror, init, update, at, REGULARIZER, separable=mirror.separable)


def as_regularizer(name: str, regularizer: MirrorMap | Process) -> Process:
    """Turn a mirror map into a constant regularizer; return a regularizer as it is."""
    if isinstance(regularizer, MirrorMap):
        return constant(regularizer)
    if not isinstance(regularizer, Process):
        kind = type(regularizer).__name__
        raise RefusedType(
            f"`{name}` must be a MirrorMap or a Process made by olx.regularizers, got "
            f"{kind}; take one, as `olx.regularizers.adagrad()` or `olx.mirrors.euclidean()`."
        )
    return regularizer.must_give(name, REGULARIZER)


def init(mirror: MirrorMap, params: PyTree) -> None:
    return None


def update(mirror: MirrorMap, stats: None, feedback: Feedback) -> None:
    return None


def at(mirror: MirrorMap, stats: None, context: PyTree) -> MirrorMap:
    return mirror
