r"""The updates I, II and III of label ranking: how the dual variables of a round are chosen.

$r'$ is the relevant label with the lowest score and $s'$ the other label with the highest score. A
dual variable $\alpha_r$ adds $\alpha_r x_t$ to a relevant label and subtracts it from another one.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 8.3.
"""

from jaxtyping import Array

from olx._refusal import public
from olx.ranking._round import Geometry, Ranked, Update


@public
def conservative() -> Update:
    r"""Update I: after a mistake $\alpha_{r'} = \alpha_{s'} = 1$; else nothing.

    In Euclidean space it is the Perceptron for label ranking.
    """
    return Update(_whole, _mistaken)


@public
def aggressive() -> Update:
    r"""Update II: the best $\alpha_{r'} = \alpha_{s'}$ in every round with a loss.

    In Euclidean space it is the Passive-Aggressive algorithm for label ranking.
    """
    return Update(_pair, _always)


@public
def optimal() -> Update:
    r"""Update III: the best $\alpha$ of all labels in every round with a loss."""
    return Update(_every, _always)


def _whole(geometry: Geometry, now: Ranked) -> Array:
    return now.weight * now.worst


def _pair(geometry: Geometry, now: Ranked) -> Array:
    return geometry.pair(now) * now.worst


def _every(geometry: Geometry, now: Ranked) -> Array:
    return geometry.every(now)


def _mistaken(now: Ranked) -> Array:
    return now.mistaken


def _always(now: Ranked) -> Array:
    return now.mixed
