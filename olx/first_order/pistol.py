r"""PiSTOL: no step size; decisions grow like an exponential of the sum of gradients.

In each coordinate, with the largest gradient so far $h$, the sum of clipped gradients $-\theta$ and
$G = \sum_s |\hat g_s|$,

$$w = w_1 + \frac{b \sqrt{G h}}\alpha\, \theta \exp\Big(\frac{\theta^2}{2 \alpha}\Big), \qquad
  \alpha = a\, h\, (h + G).$$

This is the derivative of $\Phi(\theta) = b \sqrt{G h} \exp(\theta^2 / (2\alpha))$. For $a \ge 9/4$
a round raises $\Phi$ by at most $5 b$ times the growth of $\sqrt{G h}$ beyond what was won. So for
every $u$ at once, with $v = u - w_1$ and $B = b \sqrt{G h}$, the regret of a coordinate is at most

$$v \theta - \Phi(\theta) + 5 B + \text{price} \le |v| \sqrt{\alpha \ln\Big(1 +
  \frac{\alpha v^2}{B^2}\Big)} + 4 B + h \,\big(|v| + \max_s |w_s - w_1|\big).$$

The 5 is a number that was computed, not proved: the tests look for larger ones. The clipping and
its price are those of `olx.frameworks.betting`. If all losses are multiplied by a constant, the
decisions stay the same.

Orabona 2014 has $b$ in place of $b \sqrt{G h}$, and a known range of the gradients. Vowpal Wabbit
(`--pistol`) has this factor, with $a = 1$ and $b = 1/2$, and the largest $|x_i|$ in place of $h$.

Orabona, Simultaneous Model Selection and Optimization through Parameter-free Stochastic Learning,
2014, algorithm 1.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.frameworks import betting
from olx.frameworks.betting import Account, Rule


@pytree
class PistolHparams:
    wealth: Scalar
    spread: Scalar
    rule: Rule = static()


@public
def pistol(wealth: Scalar = 0.5, spread: Scalar = 2.25) -> Learner:
    r"""PiSTOL in each coordinate, starting at `params`.

    wealth: $b$, positive.
    spread: $a$, positive; the theorem needs at least 9/4.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> learner = olx.first_order.pistol(wealth=1.0, spread=4.0)
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> bool(jnp.allclose(run.losses[:2], jnp.array([0.0, -jnp.exp(1 / 16) / 8])))
    True
    """
    wealth = check.positive("wealth", wealth)
    spread = check.positive("spread", spread)
    return betting.bettor(PistolHparams(wealth, spread, RULE), betting_regret)


_RISE = 5.0


def bet(hp: PistolHparams, coins: Array, h: Array, total: Array) -> Array:
    width = _width(hp, h, total)
    return _level(hp, h, total) * (coins / width) * betting.exp(coins**2 / (2 * width))


def reserve(hp: PistolHparams, coins: Array, h: Array, total: Array) -> Array:
    grown = betting.exp(coins**2 / (2 * _width(hp, h, total)))
    return _level(hp, h, total) * (grown - _RISE)


def most(hp: PistolHparams, v: Array, h: Array, total: Array) -> Array:
    width, level = _width(hp, h, total), _level(hp, h, total)
    return betting.conjugate(v, width, jnp.zeros_like(v), level) + (_RISE - 1) * level


def _width(hp: PistolHparams, h: Array, total: Array) -> Array:
    return hp.spread * h * (h + total)


def _level(hp: PistolHparams, h: Array, total: Array) -> Array:
    return hp.wealth * jnp.sqrt(total * h)


RULE = Rule((betting.add_size,), bet, reserve, most)


def both_sides(hp: PistolHparams, account: Account, u: PyTree) -> Certificate:
    sides = betting.both_sides(hp, account, u)
    return sides.given("`spread` must be at least 9/4", jnp.asarray(hp.spread) >= 2.25)


betting_regret = betting.regret_of("Orabona 2014", both_sides)
