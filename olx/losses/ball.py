r"""What a loss does on the scores of bounded size: its constants on the ball $|s| \le b$.

For a class of losses, one for each outcome $|y| \le Y$ that is legal,

- Lipschitz: $|\ell'(s)| \le L_b$ for $|s| \le b$;
- smooth: $\ell(r) \le \ell(s) + \ell'(s) (r - s) + \frac{\beta_b}2 (r - s)^2$ for
  $|r|, |s| \le b$;
- excess: $\ell(\Pi_b(s)) - \ell(s) \le \epsilon_b |\Pi_b(s) - s|$ for all $s$: what a projection
  on the ball costs.

Upper bounds of the smallest such numbers are enough. For a convex loss $\epsilon_b$ is the largest
slope with which it falls at the boundary, outwards.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.1.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, PyTree

from olx.core import Scalar


class BallConstants(NamedTuple):
    """The constants of a loss as functions of its `hparams`, of b and of Y.

    smooth_fn, excess_fn: None for a loss that is not smooth.
    """

    lipschitz_fn: Callable[..., Array]
    smooth_fn: Callable[..., Array] | None = None
    excess_fn: Callable[..., Array] | None = None


def one(_: PyTree, b: Array, top: Scalar) -> Array:
    """A constant that is 1 on every ball."""
    return 1.0 + 0 * b
