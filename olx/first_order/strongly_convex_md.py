r"""Logarithmic regret on strongly convex losses: mirror descent with steps $\eta_t = 1/(\sigma t)$.

$$w_{t+1} = \nabla\psi^*\Big(\nabla\psi(w_t) - \frac{g_t}{\sigma t}\Big).$$

If every loss is $\sigma$-strongly convex with respect to $\psi$, that is
$\ell(u) \ge \ell(w) + \langle g, u - w\rangle + \sigma B_\psi(u, w)$, as is $\sigma \psi$ plus
anything convex, then the regret is at most $\max_t \|g_t\|_*^2 \,(1 + \ln T) / (2\sigma\beta)$. The
Euclidean map gives projected gradient descent on any set, the entropy a multiplicative update, and
the entropy with a floor under every weight keeps the slopes of $\sigma \psi$ itself bounded.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1, theorem 5.
"""

from olx import _check as check
from olx.core import Learner, Scalar
from olx.frameworks.md import md
from olx.mirrors.base import MirrorMap
from olx.mirrors.euclidean import euclidean
from olx.schedules.decay import decay


def strongly_convex_md(sigma: Scalar, mirror: MirrorMap | None = None) -> Learner:
    r"""Steps that shrink as one over time, from `params`, for losses that curve.

    sigma: how strongly convex every loss is with respect to the potential; positive.
    mirror: `euclidean()` if None; any of the Euclidean sets, `negative_entropy()`,
        `floored_entropy(floor)`.

    The certificate is lemma 5; `olx.hindsight.strongly_convex_bound` is theorem 5.

    >>> import jax.numpy as jnp, olx
    >>> ball = olx.mirrors.euclidean(olx.convex.sets.ball(1.0))
    >>> learner = olx.first_order.strongly_convex_md(0.5, ball)
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -1.0, -1.0]
    """
    sigma = check.positive("strongly_convex_md", "sigma", sigma)
    return md(decay(1 / sigma, power=1.0), euclidean() if mirror is None else mirror)
