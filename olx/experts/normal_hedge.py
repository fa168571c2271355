r"""NormalHedge: weights from a Gaussian potential whose width fits the regrets.

$$p_{t,i} \propto q_i [R_i]_+ e^{[R_i]_+^2 / c}, \qquad \sum_i q_i e^{[R_i]_+^2 / c} = e,$$

with the regrets before round $t$; $p_t$ is the prior while no regret is positive. The root $v = 1 /
c$ of the convex, rising $v \mapsto \ln \sum_i q_i e^{v [R_i]_+^2} = 1$ is found by Newton's method
from above, where it never overshoots. With the root $c$ after round $T$, by Jensen,

$$R_T(u) \le \sqrt{c_{T+1} (1 + \mathrm{RE}(u \| q))}.$$

Chaudhuri, Freund, Hsu, A Parameter-free Hedging Algorithm, 2009.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.convex.roots import root
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.theorem import Certificate


@public
def normal_hedge(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """NormalHedge with a prior over the experts.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[0.0, 0.5, 1.0]] * 4))
    >>> run = olx.rollout(normal_hedge(), olx.losses.linear_loss, rounds, jnp.ones(3))
    >>> run.losses.tolist()
    [0.5, 0.0, 0.0, 0.0]
    """
    return expert_learner(
        "normal_hedge", None, start, weigh, learn, by_width, prior=prior, low=low, high=high
    )


def start(_: PyTree, prior: Array) -> Float[Array, " N"]:
    return jnp.zeros_like(prior)


def weigh(_: PyTree, prior: Array, regret: Array) -> Weights:
    ahead = jnp.maximum(regret, 0.0)
    return Weights(inverse_width(prior, ahead**2) * ahead**2, prior * ahead)


def learn(_: PyTree, prior: Array, regret: Array, seen: Seen) -> Array:
    return regret + seen.regret


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The inequality above: the regret in terms of the current width of the potential."""
    prior, squares = account.flat_prior, jnp.maximum(account.regret, 0.0) ** 2
    width = jnp.where(jnp.any(squares > 0), 1 / inverse_width(prior, squares), 0.0)
    entropy = relative_entropy(mixture(account, u), prior)
    return certificate(hp, account, u, jnp.sqrt(width * (1 + entropy)))


by_width = expert_theorem("by_width", "NormalHedge, by its width", None, None, both_sides)


def inverse_width(prior: Float[Array, " N"], squares: Float[Array, " N"]) -> Array:
    r"""The $v$ with $\ln \sum_i q_i e^{v x_i} = 1$ for `squares` $x \ge 0$; 1 if all are 0."""
    used = prior > 0
    top = lax.stop_gradient(jnp.max(jnp.where(used, squares, 0.0)))  # only scales the problem
    unit = safe.or_one(top, top != 0)
    x = jnp.where(top == 0, 1.0, jnp.where(used, squares / unit, 0.0))

    fixed = lax.stop_gradient((prior, x))
    above = 1 / jnp.max(fixed[1] / (1 - jnp.log(safe.or_one(fixed[0], used))))
    return root(Partial(_excess, prior, x), jnp.zeros_like(above), 2 * above, above) / unit


def _excess(prior: Array, x: Array, v: Array) -> Array:
    return v + jnp.log(jnp.sum(prior * jnp.exp(v * (x - 1)))) - 1
