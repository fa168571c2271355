r"""The 2-norm algorithm: weights from a quadratic potential of the regrets; nothing to tune.

$$p_{t,i} \propto q_i \big( [R_{t-1,i} + 1]_+^2 - [R_{t-1,i} - 1]_+^2 \big), \qquad
  \sum_i q_i [R_{t,i}]_+^2 \le t,$$

and by Cauchy and Schwarz, for every mixture $u$ and after every round,

$$R_T(u) \le \sqrt{T \sum_i u_i^2 / q_i},$$

which is $\sqrt{T / \varepsilon}$ for the uniform mixture of the best $\varepsilon N$ experts and a
uniform prior.

Luo, Optimal and Adaptive Online Learning, 2016, lemma 1, corollary 1.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts import _normal
from olx.experts.account import Account, certificate, expert_theorem, mixture
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.theorem import Certificate


@public
def two_norm(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """The 2-norm algorithm with a prior over the experts.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(two_norm(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.1, 0.0, 0.0]
    """
    return expert_learner(
        "two_norm", None, start, weigh, learn, two_norm_regret, prior=prior, low=low, high=high
    )


def start(_: PyTree, prior: Array) -> Float[Array, " N"]:
    return jnp.zeros_like(prior)


def weigh(_: PyTree, prior: Array, regret: Array) -> Weights:
    return Weights(jnp.zeros_like(regret), prior * _normal.difference(regret))


def learn(_: PyTree, prior: Array, regret: Array, seen: Seen) -> Array:
    return regret + seen.regret


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """Corollary 1 for mixtures."""
    flat, prior = mixture(account, u), account.flat_prior
    known = prior > 0
    ratio = flat**2 / safe.or_one(prior, known)
    spread = jnp.sum(jnp.where(known, ratio, jnp.where(flat > 0, jnp.inf, 0.0)))
    return certificate(hp, account, u, jnp.sqrt(account.rounds * spread))


two_norm_regret = expert_theorem("two_norm_regret", "Luo 2016, corollary 1", None, None, both_sides)
