r"""The erfi bettor: the potential solves the backward heat equation.

In each coordinate, with the largest gradient so far $h$, the sum of clipped gradients $-\theta$ and
$V = \sum_s \hat g_s^2$,

$$w = w_1 + \partial_\theta \Phi(\theta), \qquad \Phi(\theta) = \epsilon \sqrt X \Big( 2 \int_0^z
  \!\!\int_0^y e^{x^2} dx\, dy - 1 \Big), \qquad X = V + h \sqrt{\theta^2 + h^2}, \quad z =
  \frac{\theta}{\sqrt{2 X}}.$$

As a function of $\theta$ and $X$ alone, $\Phi$ solves $\partial_X \Phi = -\frac12
\partial_{\theta\theta} \Phi$, and its derivative in $\theta$ is $\epsilon \sqrt{\pi/2}\,
\mathrm{erfi}(z)$. The term $h \sqrt{\theta^2 + h^2}$ pays for steps that are not small: a clipped
gradient $\hat g$ changes $\Phi$ by at most $-\hat g$ times the bet. For every $u$ at once, with
$v = u - w_1$ and $\Lambda = \ln(\frac94 + \frac{3 |v|}{2\epsilon})$, the regret of a coordinate is
at most

$$v \theta - \Phi(\theta) + \text{price} \le \big(\epsilon + 2 |v| \sqrt\Lambda\big) \big(\sqrt{V +
  h^2} + 2 h \sqrt\Lambda\big) + h\, \big(|v| + \max_s |w_s - w_1|\big).$$

It grows with $\sqrt V$ without a logarithm of $V$. The price of that is a regret to $w_1$ of
$\epsilon \sqrt V$. The inequality for one step was computed, not proved, for this $X$: the tests
look for violations. The clipping and its price are those of `olx.frameworks.betting`. If all losses
are multiplied by a constant, the decisions stay the same.

Zhang, Cutkosky, Paschalidis, PDE-Based Optimal Strategy for Unconstrained Online Learning, 2022,
for the potential; Zhang, Yang, Cutkosky, Paschalidis, Improving Adaptive Online Learning Using
Refined Discretization, 2024, for $V$ in place of the number of rounds.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import dawsn

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.frameworks import betting
from olx.frameworks.betting import Rule


@pytree
class ErfiHparams:
    wealth: Scalar
    rule: Rule = static()


@public
def erfi_betting(wealth: Scalar = 0.3) -> Learner:
    r"""The erfi bettor in each coordinate, starting at `params`.

    wealth: $\epsilon$, positive. Decisions up to about this size come at no logarithm.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((30, 2)))
    >>> learner = olx.first_order.erfi_betting()
    >>> game = olx.losses.linear_loss, rounds, jnp.zeros(2), jnp.array([-1.0, 2.0])
    >>> bool(olx.certify(learner, *game, progress=False).holds)
    True
    """
    wealth = check.positive("wealth", wealth)
    return betting.bettor(ErfiHparams(wealth, RULE), betting_regret)


def bet(hp: ErfiHparams, coins: Array, h: Array, squares: Array) -> Array:
    wide = jnp.sqrt(coins**2 + h**2)
    x, z = _time(coins, h, squares)
    falls = h * coins / (2 * wide * jnp.sqrt(x))
    return hp.wealth * betting.exp(z**2) * (2**0.5 * _dawson(z) - falls)


def reserve(hp: ErfiHparams, coins: Array, h: Array, squares: Array) -> Array:
    x, z = _time(coins, h, squares)
    return hp.wealth * jnp.sqrt(x) * betting.exp(z**2) * (2 * z * _dawson(z) - 1)


def most(hp: ErfiHparams, v: Array, h: Array, squares: Array) -> Array:
    root = jnp.sqrt(jnp.log(2.25 + 1.5 * v / hp.wealth))
    return (hp.wealth + 2 * v * root) * (jnp.sqrt(squares + h**2) + 2 * h * root)


def _time(coins: Array, h: Array, squares: Array) -> tuple[Array, Array]:
    x = squares + h * jnp.sqrt(coins**2 + h**2)
    return x, coins / jnp.sqrt(2 * x)


_MIDDLE = 9.0


def _bent(t: np.ndarray) -> np.ndarray:
    """Dawson's function times 1 / z + 2 z, at the z whose square is 9 (1 + t) / (1 - t)."""
    z = np.sqrt(_MIDDLE * (1 + t) / (1 - t))
    return dawsn(z) * (1 / z + 2 * z)


_SERIES = np.polynomial.Chebyshev.interpolate(_bent, 44).coef


def _dawson(z: Array) -> Array:
    r"""$e^{-z^2} \int_0^z e^{x^2} dx$, to 13 digits: a Chebyshev series in $z^2$."""
    square = z**2
    t = (square - _MIDDLE) / (square + _MIDDLE)
    after, last = jnp.zeros_like(t), jnp.zeros_like(t)
    for coefficient in _SERIES[:0:-1]:
        after, last = float(coefficient) + 2 * t * after - last, after
    return (float(_SERIES[0]) + t * after - last) * z / (1 + 2 * square)


RULE = Rule((betting.add_square,), bet, reserve, most)


betting_regret = betting.regret_of("Zhang, Cutkosky, Paschalidis 2022")
