r"""Adapt-ML-Prod: Prod on regrets, with one learning rate per expert.

$$p_{t,i} \propto q_i \eta_{t-1,i} e^{\eta_{t-1,i} S_{t-1,i}}, \qquad S_{t,i} = S_{t-1,i} +
  \frac1{\eta_{t-1,i}} \ln(1 + \eta_{t-1,i} r_{t,i}), \qquad
  \eta_{t,i} = \min\Big( \frac12, \sqrt{\frac{\ln(1 / q_i)}{1 + \sum_{s \le t} r_{s,i}^2}} \Big).$$

Its regret to an expert is of the order of the root of the sum of squared regrets to that expert, so
it is constant for random losses with a gap. The paper has a uniform prior and raises it to the
power $\eta_{t,i} / \eta_{0,i}$; here the prior does not change.

Gaillard, Stoltz, van Erven, A Second-order Bound with Excess Losses, 2014.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts._needs import light
from olx.experts._rates import RatesStats, rates, second_order, start, weigh
from olx.experts.base import Seen, expert_learner


@public
def adapt_ml_prod(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """Adapt-ML-Prod with a prior over the experts.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> run = olx.rollout(adapt_ml_prod(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.375, 0.258]
    """
    parts = start, weigh, learn, THEOREM
    return expert_learner(
        "adapt_ml_prod", None, *parts, prior=prior, low=low, high=high, needs=(_LIGHT,)
    )


def _is_light(hp: PyTree, weight: Scalar) -> Array | bool:
    return weight < 2  # rates are at most 1/2


_LIGHT = light("adapt_ml_prod", _is_light, "the weight of a round must be below 2")


def learn(_: PyTree, prior: Array, stats: RatesStats, seen: Seen) -> RatesStats:
    eta = rates(prior, stats.squares)
    total = stats.total + jnp.log1p(eta * seen.regret) / eta
    return RatesStats(total, stats.squares + seen.regret**2)


# since ln(1 + x) >= x - x^2 for x >= -1/2
THEOREM = second_order("Gaillard, Stoltz, van Erven 2014, Adapt-ML-Prod")
