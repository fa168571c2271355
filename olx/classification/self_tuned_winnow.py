r"""Winnow with an automatic step size, set by the number of mistakes and the largest row so far.

$$w_{t,i} \propto \exp\Big(\frac{1}{c_t} \sum_{s \in M,\, s < t} y_s x_{s,i}\Big), \qquad
  c_t = X_t \sqrt{\frac{m_t + 1}{\log d}}, \qquad X_t = \max_{s \le t} \|x_s\|_\infty,$$

with $m_t$ the number of mistakes before round $t$. For $u$ in the simplex and any margin $\gamma$,
with $H$ the total hinge loss of $u$ on mistakes and $X$ the largest $X_t$, mistakes are at most

$$\frac H\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{H \log d} + \frac{4 X^2 \log d}{\gamma^2}.$$

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 5.2,
corollary 6.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx._refusal import RefusedType, own_name, public
from olx.convex import norms
from olx.core import STEP, Feedback, Learner, Process, Scalar
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import Tally, alike, at_margin, logarithm, self_tuned
from olx.frameworks.primal_dual import DualAscentHparams
from olx.losses.hinges import hinge
from olx.mirrors.entropy import negative_entropy
from olx.schedules.mistakes import MistakesStats, mistakes
from olx.theorem import About, Certificate, Theorem


@public
def self_tuned_winnow() -> Learner:
    """Winnow on the simplex with an automatic step size, for at least two weights.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.r_of_k(jax.random.key(0), rounds=200, features=30, r=1, k=2)
    >>> run = olx.rollout(self_tuned_winnow(), olx.losses.zero_one, rounds, jnp.zeros(30))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    schedule = Process(None, init, update, at, STEP)
    learner = dual_ascent(schedule, negative_entropy(), hinge, conservative())
    return learner.carrying(self_tuned_winnow_mistakes(1.0))


def init(_: None, params: PyTree) -> MistakesStats:
    return _schedule(params).init(params)


def update(_: None, stats: MistakesStats, feedback: Feedback) -> MistakesStats:
    return _schedule(feedback.context).update(stats, feedback)


def at(_: None, stats: MistakesStats, context: PyTree) -> Array:
    return _schedule(context).at(stats, context)


@public
def self_tuned_winnow_mistakes(margin: Scalar) -> Theorem:
    r"""Corollary 6, for `self_tuned_winnow`, $u$ in the simplex and any `margin` $\gamma$."""
    about = About("`self_tuned_winnow`", _is_self_tuned_winnow)
    source = "Shalev-Shwartz 2007, corollary 6"
    return at_margin("self_tuned_winnow_mistakes", source, both_sides, margin, about)


def both_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return self_tuned(tally, logarithm(u))


def _is_self_tuned_winnow(learner: Learner) -> bool:
    return alike(learner.hparams, self_tuned_winnow().hparams)


@own_name("self_tuned_winnow")
def _schedule(row: PyTree) -> Process:
    """The schedule for rows of this size."""
    size = sum(jnp.size(leaf) for leaf in jax.tree.leaves(row))
    if size < 2:
        raise RefusedType(f"`params` must hold two or more numbers, got {size}.")
    return mistakes(math.log(size), norms.l1())
