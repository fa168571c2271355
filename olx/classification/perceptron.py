r"""The Perceptron: add $y_t x_t$ after a mistake, $y_t \langle w_t, x_t\rangle \le 0$.

$$w_1 = 0, \qquad w_{t+1} = \begin{cases} w_t + y_t x_t & y_t \langle w_t, x_t\rangle \le 0 \\
  w_t & \text{otherwise.} \end{cases}$$

It is the conservative dual ascent on the hinge in Euclidean space. Another learning rate only
scales $w_t$, so there is none. With $H$ the hinge of $u$ on the mistakes and $X$ the longest row
among them, there are at most $H + X \|u\| \sqrt H + X^2 \|u\|^2$ mistakes:
`olx.hindsight.perceptron_mistake_bound`.

Rosenblatt, The Perceptron, 1958; Shalev-Shwartz, Online Learning: Theory, Algorithms, and
Applications, 2007, corollary 5.
"""

from olx.core import Learner
from olx.frameworks.ascents.conservative import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.losses.hinges import hinge
from olx.mirrors.euclidean import euclidean


def perceptron() -> Learner:
    """Learn from mistakes by adding them up.

    A predictor for labels of +1 and -1; the context is shaped like `params`, whose values are of
    no account. Its first score is 0, which counts as a mistake.

    >>> import jax.numpy as jnp, olx
    >>> rows = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> rounds = olx.Rounds(rows, jnp.array([1.0, -1.0, -1.0, -1.0]))
    >>> run = olx.rollout(perceptron(), olx.losses.zero_one, rounds, jnp.zeros(2))
    >>> run.losses.tolist(), run.state.acc.tolist()
    ([1.0, 1.0, 0.0, 0.0], [0.0, -1.0])
    """
    return dual_ascent(euclidean(), hinge, conservative())
