r"""Bernstein online aggregation: exponential weights on regrets minus their scaled squares.

$$p_{t,i} \propto q_i \eta_{t-1,i} e^{\eta_{t-1,i} S_{t-1,i}}, \qquad S_{t,i} = \sum_{s \le t}
  r_{s,i} - \eta_{s-1,i} r_{s,i}^2,$$

with the rates of `adapt_ml_prod` and the same second-order bound.

Wintenberger, Optimal Learning with Bernstein Online Aggregation, 2017.
"""

from jaxtyping import Array, PyTree

from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts._rates import RatesStats, rates, second_order, start, weigh
from olx.experts.base import Seen, expert_learner


@public
def boa(prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None) -> Learner:
    """Bernstein online aggregation with a prior over the experts.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(boa(), olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.378, 0.257]
    """
    return expert_learner(
        "boa", None, start, weigh, learn, THEOREM, prior=prior, low=low, high=high
    )


def learn(_: PyTree, prior: Array, stats: RatesStats, seen: Seen) -> RatesStats:
    squares = seen.regret**2
    total = stats.total + seen.regret - rates(prior, stats.squares) * squares
    return RatesStats(total, stats.squares + squares)


# since e^(x - x^2) <= 1 + x for x >= -1/2
THEOREM = second_order("Wintenberger 2017, BOA")
