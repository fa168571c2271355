r"""FreeGrad: no step size, and neither the range of the gradients nor the norm of $u$ is known.

In each coordinate, with the first gradient $h_1$ that is not 0, the largest one so far $h$, the sum
of clipped gradients $-\theta$, and $V = h_1^2 + \sum_s \hat g_s^2$,

$$w = w_1 + \partial_\theta \Phi(\theta), \qquad \Phi(\theta) = \epsilon\, \frac{h_1^2}{\sqrt V}
  \exp\Big(\frac{\theta^2}{2 V + 2 h |\theta|}\Big).$$

The potential starts at $\epsilon h_1$ and falls with $h$. So for every $u$ at once, with
$v = u - w_1$ and $A = \epsilon h_1^2 / \sqrt V$, the regret of a coordinate is at most

$$v \theta - \Phi(\theta) + \epsilon h_1 + \text{price} \le \epsilon h_1 + \max\Big(|v|
  \sqrt{2 V \ln\Big(1 + \frac{2 V v^2}{A^2}\Big)}, 4 h |v| \ln^+ \frac{4 h |v|}A\Big) + h \,\big(|v|
  + \max_s |w_s - w_1|\big).$$

The clipping and its price are those of `olx.frameworks.betting`. If all losses are multiplied by a
constant, the decisions stay the same.

Mhammedi, Koolen, Lipschitz and Comparator-Norm Adaptivity in Online Learning, 2020, (9) and theorem
5, here for each coordinate, as in Vowpal Wabbit (`--freegrad`), and without restarts.
"""

import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.frameworks import betting
from olx.frameworks.betting import Rule


@pytree
class FreeGradHparams:
    wealth: Scalar
    rule: Rule = static()


@public
def freegrad(wealth: Scalar = 1.0) -> Learner:
    r"""FreeGrad in each coordinate, starting at `params`.

    wealth: $\epsilon$, positive: the size of decisions that is reached first. The regret to
        `params` is at most $\epsilon$ times the first gradient of each coordinate, and the price.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.full((20, 1), 1e6))
    >>> play = lambda loss: olx.rollout(olx.first_order.freegrad(), loss, rounds, jnp.zeros(1))
    >>> small = play(lambda w, z: 1e-6 * olx.losses.linear_loss(w, z))
    >>> bool(jnp.allclose(play(olx.losses.linear_loss).losses, 1e6 * small.losses))
    True
    """
    wealth = check.positive("wealth", wealth)
    return betting.bettor(FreeGradHparams(wealth, RULE), betting_regret)


def add_variance(g: Array, h: Array, variance: Array) -> Array:
    return variance + jnp.where(h > 0, 1.0, 2.0) * g**2  # the first square counts as h_1^2 too


def keep_first(g: Array, h: Array, first: Array) -> Array:
    return jnp.where(h > 0, first, jnp.abs(g))


def potential(hp: FreeGradHparams, coins: Array, h: Array, variance: Array, first: Array) -> Array:
    size = jnp.abs(coins)
    return _level(hp, variance, first) * betting.exp(size**2 / (2 * (variance + h * size)))


def bet(hp: FreeGradHparams, coins: Array, h: Array, variance: Array, first: Array) -> Array:
    wide = variance + h * jnp.abs(coins)
    slope = coins * (variance + wide) / (2 * wide**2)
    return potential(hp, coins, h, variance, first) * slope


def reserve(hp: FreeGradHparams, coins: Array, h: Array, variance: Array, first: Array) -> Array:
    return potential(hp, coins, h, variance, first) - hp.wealth * first


def most(hp: FreeGradHparams, v: Array, h: Array, variance: Array, first: Array) -> Array:
    level = _level(hp, variance, first)
    return hp.wealth * first + betting.conjugate(v, 2 * variance, 4 * h, level)


def _level(hp: FreeGradHparams, variance: Array, first: Array) -> Array:
    return hp.wealth * first * (first / jnp.sqrt(variance))


RULE = Rule((add_variance, keep_first), bet, reserve, most)


betting_regret = betting.regret_of("Mhammedi, Koolen 2020")
