r"""Multiclass Passive-Aggressive: the smallest step that puts the label ahead of its best rival.

With $r_t$ the best class other than $y_t$ and $\ell_t = \max(0, 1 - \langle w_{y_t} - w_{r_t},
x_t\rangle)$,

$$w_{y_t} \leftarrow w_{y_t} + \tau_t x_t, \quad w_{r_t} \leftarrow w_{r_t} - \tau_t x_t, \qquad
  \tau_t = \frac{\ell_t}{2 \|x_t\|^2}, \quad \min\Big(C, \frac{\ell_t}{2 \|x_t\|^2}\Big)
  \quad \text{or} \quad \frac{\ell_t}{2 \|x_t\|^2 + 1 / (2C)}$$

for PA, PA-I and PA-II. These are the rule and the theorems of
`olx.classification.passive_aggressive` with the multiclass hinge in place of the hinge. For two
classes the difference of their weights is that of the binary learner with $2 C$. The step looks at
one rival; `dual_ascent` on the multiclass hinge by the rule `aggressive` looks at all of them.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006.
"""

from olx import _check as check
from olx._refusal import public_as
from olx._words import computed
from olx.classification.passive_aggressive import aggressiveness_of, learner
from olx.core import Learner, Scalar
from olx.losses.class_hinges import multiclass_hinge


@public_as("multiclass.passive_aggressive")
def passive_aggressive() -> Learner:
    """PA: correct every margin error completely, for separable data.

    `params` is the first decision, an array with one row per class.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.2)
    >>> loss = olx.losses.multiclass_zero_one
    >>> run = olx.rollout(passive_aggressive(), loss, rounds, jnp.zeros((3, 5)))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    return learner(multiclass_hinge)


@public_as("multiclass.passive_aggressive_1")
def passive_aggressive_1(aggressiveness: Scalar) -> Learner:
    """PA-I: correct a margin error by a step of at most `aggressiveness`, the C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    most = check.positive("aggressiveness", aggressiveness)
    return learner(multiclass_hinge, most)


@public_as("multiclass.passive_aggressive_2")
def passive_aggressive_2(aggressiveness: Scalar) -> Learner:
    """PA-II: correct a larger part of a margin error for larger `aggressiveness`, C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    c = check.positive("aggressiveness", aggressiveness)
    made = learner(multiclass_hinge, softness=1 / (2 * c))
    return computed(made, aggressiveness=aggressiveness_of)
