r"""NH-Boost and NH-Boost.DT: boosters without a parameter that ignore easy examples.

Both are learners of experts, `normal_hedge` and `normal_hedge_dt`, whose experts are the examples.
With the edge $\gamma_t = \frac12 \langle p_t, v_t\rangle$ and the positions $s_{t,i} = s_{t-1,i} +
\frac12 v_{t,i} - \gamma_t$, the weights of NH-Boost.DT are

$$p_{t,i} \propto e^{[s_{t-1,i} - 1]_-^2 / (3 t)} - e^{[s_{t-1,i} + 1]_-^2 / (3 t)} ,$$

and every hypothesis has one vote. An example that is classified correctly often enough, $s \ge 1$,
has no weight. The margin of an example is $\frac1T \sum_t v_{t,i}$. With $\gamma$ the mean edge and
$\theta < 2 \gamma$, the share of examples with a margin of at most $\theta$ is at most

$$\frac{D_T}{e^{T (2 \gamma - \theta)^2 / 12} - 1}, \qquad
  D_T = \frac12 \sum_{t \le T} (e^{4 / (3 t)} - 1) \le \frac{(e^{4/3} - 1) (\ln T + 1)}2 ,$$

because $s_{T,i} \le -T (2 \gamma - \theta) / 2$ for such an example. The theorem in the source has
$T (2 \gamma - \theta)^2 / 3$ in the exponent, but $T \gamma^2 / 3$ for the training error, $\theta
= 0$: its two claims differ by a factor of 4. Its proof gives $T (2 \gamma - \theta)^2 / 12$ for
both. An example has a margin above $\theta$ if $\theta < 2 (\gamma - R / T)$ for its regret $R =
\sqrt{3 T \ln(1 / \epsilon)}$. This is $R / T < (2 \gamma - \theta) / 2$, and the factor $\frac12$
is squared.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 4 and 5, theorem 3.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import public
from olx.boosting.booster import BoosterHparams, Coefficient, one, weighted
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.experts.base import ExpertHparams
from olx.experts.normal_hedge import normal_hedge, normal_hedge_dt
from olx.theorem import About, Theorem

AHEAD = "the mean edge must be more than half of `theta`"


@public
def nh_boost() -> Learner:
    """NH-Boost (algorithm 5): NormalHedge over the examples.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]))
    >>> run = olx.rollout(
    ...     nh_boost(), olx.losses.linear_loss, rounds, jnp.ones(3), record=olx.record.actions
    ... )
    >>> (run.trace[1] > 0).tolist()
    [False, True, False]
    """
    return weighted("nh_boost", normal_hedge(), Coefficient(None, one))


@public
def nh_boost_dt() -> Learner:
    """NH-Boost.DT (algorithm 4): NormalHedge.DT over the examples.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]] * 30))
    >>> uniform = jnp.ones(3) / 3
    >>> learner = nh_boost_dt()
    >>> proof = olx.certify(learner, olx.losses.linear_loss, rounds, uniform, uniform)
    >>> bool(proof["margins"].holds)
    True
    """
    learner = weighted("nh_boost_dt", normal_hedge_dt(), Coefficient(None, one))
    return learner.carrying(margins(0.0))


@public
def margins(theta: Scalar) -> Theorem:
    r"""Theorem 3: the share of examples with a margin of at most `theta`.

    `published` bounds $D_T$ by its logarithm. The share is by the first weights of the examples.
    `u` is not used.

    theta: below twice the mean edge; 0 gives the training error.
    """
    theta = check.between("theta", theta, -1.0, 1.0)
    parts = open_account, add_round, Partial(both_sides, theta)
    return Theorem("margins", "Luo 2016, theorem 3, by its proof", *parts, about=_NH_BOOST_DT)


class Account(NamedTuple):
    first: Float[Array, " N"]
    votes: Float[Array, " N"]  # T times the margins
    edges: Float[Array, ""]  # the sum of edges
    rounds: Float[Array, ""]
    excess: Float[Array, ""]  # D_T
    unit: Bool[Array, ""]


def open_account(hp: BoosterHparams, state: PyTree, u: PyTree) -> Account:
    first, _ = ravel_pytree(hp.inner.predict(state))
    zero = jnp.zeros((), first.dtype)
    return Account(first, jnp.zeros_like(first), zero, zero, zero, jnp.ones((), bool))


def add_round(
    hp: BoosterHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    (p, _), (v, _) = ravel_pytree(feedback.action), ravel_pytree(feedback.outcome)
    now = account.rounds + 1
    return Account(
        account.first,
        account.votes + v,
        account.edges + jnp.vdot(p, v) / 2,
        now,
        account.excess + jnp.expm1(4 / (3 * now)) / 2,
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def both_sides(theta: Scalar, hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    t = account.rounds
    share = jnp.sum(jnp.where(account.votes <= theta * t, account.first, 0.0))
    gap = 2 * account.edges / jnp.maximum(t, 1.0) - theta
    ahead = gap > 0
    fall = jnp.expm1(t * jnp.where(ahead, gap, 1.0) ** 2 / 12)
    most = float(np.expm1(4 / 3)) / 2 * (1 + jnp.log(jnp.maximum(t, 1.0)))
    right, looser = (safe.divide(d, fall, jnp.inf, fall > 0) for d in (account.excess, most))
    proof = Certificate(share, right, jnp.ones_like(share) + jnp.where(ahead, right, 0.0), looser)
    return proof.given(AHEAD, ahead).given(UNIT_WEIGHTS, account.unit)


def _is_dt(learner: Learner) -> bool:
    hp = learner.hparams
    inner = hp.inner.hparams if isinstance(hp, BoosterHparams) else None
    return isinstance(inner, ExpertHparams) and inner.owner == "normal_hedge_dt"


_NH_BOOST_DT = About("`olx.boosting.nh_boost_dt`", _is_dt)
