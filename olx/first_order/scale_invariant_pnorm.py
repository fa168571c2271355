r"""Scale-invariant p-norm regression and classification.

Follow the regularized leader with `olx.regularizers.scale_invariant_pnorm`: multiplying a feature
by any constant, in all rounds, changes no prediction, and the regret to $u$ grows with
$\sum_i |u_i| b_{T,i}$, which does not change either. Made for many features of which few are
non-zero in a row.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1.
"""

from olx import _check as check
from olx.core import Learner, Scalar
from olx.frameworks.ftrl import ftrl
from olx.regularizers.scale_invariant_pnorm import scale_invariant_pnorm as regularizer


def scale_invariant_pnorm(eta: Scalar, lipschitz: Scalar = 1.0) -> Learner:
    r"""Decisions for `olx.linear`, in units of the features.

    eta: positive; hindsight favours $\sum_i |u_i| b_{T,i} / \sqrt 2$.
    lipschitz: of the loss in the score; the bound `olx.hindsight.scale_invariant_pnorm_bound` asks
        for rounds of weight 1.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.linear(olx.first_order.scale_invariant_pnorm(1.0))
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    eta = check.positive("scale_invariant_pnorm", "eta", eta)
    return ftrl(eta, regularizer(lipschitz))
