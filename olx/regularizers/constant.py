r"""The constant regularizer, $f_t = f$."""

from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import REGULARIZER, Feedback, Process
from olx.mirrors.base import MirrorMap


@public
def constant(mirror: MirrorMap) -> Process:
    check.instance("constant", "mirror", mirror, MirrorMap)
    return Process(mirror, init, update, at, REGULARIZER, separable=mirror.separable)


def as_regularizer(owner: str, name: str, regularizer: MirrorMap | Process) -> Process:
    """Turn a mirror map into a constant regularizer; return a regularizer as it is."""
    if isinstance(regularizer, MirrorMap):
        return constant(regularizer)
    if not isinstance(regularizer, Process):
        kind = type(regularizer).__name__
        raise TypeError(
            f"{owner}: `{name}` must be a MirrorMap or a Process made by olx.regularizers, got "
            f"{kind}; take one, as `olx.regularizers.adagrad()` or `olx.mirrors.euclidean()`."
        )
    return regularizer.must_give(owner, name, REGULARIZER)


def init(mirror: MirrorMap, params: PyTree) -> None:
    return None


def update(mirror: MirrorMap, stats: None, feedback: Feedback) -> None:
    return None


def at(mirror: MirrorMap, stats: None, context: PyTree) -> MirrorMap:
    return mirror
