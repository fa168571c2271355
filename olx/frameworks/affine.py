r"""Affine predictors: the score $\langle w, x \rangle + b$ with the decisions of a point learner.

It is `olx.linear` on rows with a feature that is always 1 after the others. The decision is one
array, whose last entry is the intercept $b$. A loss that is convex in the score is convex in
$(w, b)$, so all theorems about the inner learner hold, with $(u, b)$ as the comparator and
$\|(x, 1)\|$ in place of $\|x\|$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 2.1.
"""

from olx import _check as check
from olx._refusal import public
from olx.core import Learner
from olx.frameworks.lift import LiftHparams, affine_dot, linear, model


@public
def affine(inner: Learner) -> Learner:
    r"""Predict $\langle w, x \rangle + b$ with the decisions of `inner`.

    Start from one number more than there are features; the last one is the intercept.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=2000, features=3)
    >>> rounds = rounds._replace(outcome=rounds.outcome + 5)
    >>> learner = olx.affine(olx.ogd(0.05))
    >>> run = olx.run(learner, olx.losses.squared, rounds, jnp.zeros(4))
    >>> olx.decision(learner, run.state, rounds.context[0]).round()[-1].item()
    5.0
    """
    check.instance("inner", inner, Learner)
    return model(inner, affine_dot)


def is_affine(learner: Learner) -> bool:
    hparams = learner.hparams
    return isinstance(hparams, LiftHparams) and hparams.apply.func is affine_dot


def as_linear(learner: Learner) -> Learner:
    """The learner that plays the same on rows with a feature that is always 1."""
    return linear(learner.hparams.inner)
