r"""Multiclass soft confidence-weighted learning: a Gaussian over the weights of every class.

The rows of weights have the covariance $\frac12 P$, so the difference of the label and its best
rival has $P$. After a round this difference changes as in
`olx.second_order.soft_confidence_weighted`: as little as possible, such that the label beats its
rival with a probability of at least $\Phi(\phi)$, or at a price. No bound is known that a run could
be checked against.

Crammer, Dredze, Kulesza, Multi-Class Confidence Weighted Algorithms, 2009, for the update of one
rival; Wang, Zhao, Hoi, Exact Soft Confidence-Weighted Learning, 2012.
"""

from jaxtyping import Array

from olx._refusal import public_as
from olx._words import computed
from olx.core import Learner, Scalar
from olx.multiclass._second_order import versus
from olx.second_order.confidence_weighted import confidence_of, soft_rule


@public_as("multiclass.soft_confidence_weighted")
def soft_confidence_weighted(
    confidence: Scalar = 0.9, c: Scalar = 1.0, *, squared: bool = False
) -> Learner:
    r"""Multiclass SCW-I, or SCW-II if `squared`, a predictor for labels 0, ..., k - 1.

    confidence: $\Phi(\phi)$ in (0.5, 1).
    c: the $C$ of the paper, positive; smaller for more noise. It is multiplied by the weight of the
        round.
    squared: whether the price is `c` times the square of the miss; else it is `c` times the miss.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.1)
    >>> learner, loss = soft_confidence_weighted(), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    owner = "multiclass.soft_confidence_weighted"
    learner = versus(owner, soft_rule(confidence, c, squared))
    return computed(learner, confidence=_confidence)


def _confidence(learner: Learner) -> Array:
    return confidence_of(learner.hparams.rule.hparams)
