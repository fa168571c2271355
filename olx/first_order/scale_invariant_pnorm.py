r"""Scale-invariant p-norm regression and classification.

Follow the regularized leader with `olx.regularizers.scale_invariant_pnorm`. Multiplying a feature
by a constant in all rounds changes no prediction. The regret bound depends on
$U_t = \sum_i |u_i| b_{t,i}$, which does not change either. It suits many features with few
non-zeros per row. For rounds of weight 1 and losses $L$-Lipschitz in the score,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \beta_{t+1} \Big( \frac{U_t^2}{2\eta} + \eta \Big)
  \le L \sqrt{e (t+1)(p_t - 1)} \Big( \frac{U_t^2}{2\eta} + \eta \Big).$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.ftrl import FTRLHparams, FTRLState, ftrl
from olx.frameworks.regret import Regret, add_regret, open_regret, regret_sides
from olx.regularizers.scale_invariant import exponent, pnorm_level
from olx.regularizers.scale_invariant import scale_invariant_pnorm as regularizer
from olx.theorem import Certificate, Theorem


@public
def scale_invariant_pnorm(eta: Scalar, lipschitz: Scalar = 1.0) -> Learner:
    r"""A p-norm learner in units of the features; it must be inside `olx.linear`.

    eta: positive; in hindsight $\sum_i |u_i| b_{T,i} / \sqrt 2$ is best.
    lipschitz: $L$ of the loss in the score.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), rounds=40, features=3)
    >>> learner = olx.linear(olx.first_order.scale_invariant_pnorm(1.0))
    >>> game = olx.losses.hinge, rounds, jnp.zeros(3), u
    >>> bool(olx.certify(learner, *game, progress=False).holds)
    True
    """
    eta = check.positive("eta", eta)
    return ftrl(eta, regularizer(lipschitz)).carrying(scale_invariant_regret)


class Account(NamedTuple):
    """The account of both scale-invariant learners."""

    regret: Regret
    right: Float[Array, ""]  # after the last round, like `published`
    published: Float[Array, ""]
    lipschitz: Bool[Array, ""]  # whether |g_i| <= L |x_i| in every round and coordinate


def open_account(hp: FTRLHparams, state: FTRLState, u: PyTree) -> Account:
    regret = open_regret(state.theta.value, u)
    return Account(regret, regret.left, regret.left, jnp.ones((), bool))


def add_round(
    hp: FTRLHparams, account: Account, state: FTRLState, feedback: Feedback, u: PyTree
) -> Account:
    after, own = hp.regularizer.update(state.stats, feedback), hp.regularizer.hparams
    size = jnp.asarray(tree.vdot(jax.tree.map(jnp.abs, u), after.largest))
    factor, p = size**2 / (2 * hp.eta) + hp.eta, exponent(after)
    t = account.regret.rounds.now
    worst = own.lipschitz * jnp.sqrt(jnp.e * (t + 1) * (p - 1))
    return add_sides(
        account, feedback, u, own.lipschitz, pnorm_level(own, after) * factor, worst * factor
    )


def add_sides(
    account: Account, feedback: Feedback, u: PyTree, most: Scalar, right: Array, published: Array
) -> Account:
    """Add a round to the regret, set the right sides, and check the Lipschitz constant `most`."""

    def within(g: Array, x: Array) -> Array:
        return jnp.all(jnp.abs(g) <= most * jnp.abs(x) * (1 + 64 * jnp.finfo(g.dtype).eps))

    met = jax.tree.leaves(jax.tree.map(within, feedback.grad, feedback.context))
    met = account.lipschitz & jnp.all(jnp.stack(met))
    return Account(add_regret(account.regret, feedback, u), right, published, met)


def both_sides(hp: FTRLHparams, account: Account, u: PyTree) -> Certificate:
    proof = regret_sides(account.regret, account.right, account.published)
    return proof.given("slopes in the score must be at most `lipschitz`", account.lipschitz)


scale_invariant_regret = Theorem(
    "scale_invariant_regret",
    "Orabona et al. 2015, theorem 1 (12)",
    open_account,
    add_round,
    both_sides,
)
