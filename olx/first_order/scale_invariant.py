r"""Scale-invariant linear predictors: multiplying a feature by a constant changes no prediction.

Both follow the regularized leader, AdaGrad with `olx.regularizers.scale_invariant_adagrad` and the
p-norm learner with `olx.regularizers.scale_invariant_pnorm`, which suits many features with few
non-zeros per row. Their regret bounds depend on $\sum_i (u_i b_{t,i})^2$ and on $U_t = \sum_i |u_i|
b_{t,i}$, which do not change with the scale of a feature either. For rounds of weight 1 and losses
$L$-Lipschitz in the score, $\sum_{s \le t} \ell_s(w_s) - \ell_s(u)$ is at most

$$\text{AdaGrad: } \sum_i a_{t+1,i} \Big( \frac{\sqrt d (u_i b_{t,i})^2}{2\eta} +
  \frac{\eta}{\sqrt d} \Big)
  \le L \sqrt{d (t+1)} \Big( \frac{\sum_i (u_i b_{t,i})^2}{2\eta} + \eta \Big),$$
$$\text{p-norm: } \beta_{t+1} \Big( \frac{U_t^2}{2\eta} + \eta \Big)
  \le L \sqrt{e (t+1)(p_t - 1)} \Big( \frac{U_t^2}{2\eta} + \eta \Big).$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1.
"""

from collections.abc import Callable
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
from olx.regularizers import scale_invariant_adagrad as adagrad_regularizer
from olx.regularizers import scale_invariant_pnorm as pnorm_regularizer
from olx.regularizers.scale_invariant_adagrad import level as adagrad_level
from olx.regularizers.scale_invariant_pnorm import exponent
from olx.regularizers.scale_invariant_pnorm import level as pnorm_level
from olx.theorem import Certificate, Theorem


@public
def scale_invariant_adagrad(eta: Scalar, lipschitz: Scalar = 1.0) -> Learner:
    r"""AdaGrad in units of the features; it must be inside `olx.linear`.

    eta: positive; in hindsight $(\sum_i (u_i b_{T,i})^2 / 2)^{1/2}$ is best.
    lipschitz: $L$ of the loss in the score.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.linear(olx.first_order.scale_invariant_adagrad(1.0))
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    eta = check.positive("eta", eta)
    return ftrl(eta, adagrad_regularizer(lipschitz)).carrying(adagrad_regret)


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
    return ftrl(eta, pnorm_regularizer(lipschitz)).carrying(pnorm_regret)


class Account(NamedTuple):
    """The account of both scale-invariant learners."""

    regret: Regret
    right: Float[Array, ""]  # after the last round, like `published`
    published: Float[Array, ""]
    lipschitz: Bool[Array, ""]  # whether |g_i| <= L |x_i| in every round and coordinate


def open_account(hp: FTRLHparams, state: FTRLState, u: PyTree) -> Account:
    regret = open_regret(state.theta.value, u)
    return Account(regret, regret.left, regret.left, jnp.ones((), bool))


def add_adagrad(
    hp: FTRLHparams, account: Account, state: FTRLState, feedback: Feedback, u: PyTree
) -> Account:
    after, own = hp.regularizer.update(state.stats, feedback), hp.regularizer.hparams
    d = sum(leaf.size for leaf in jax.tree.leaves(u))
    paid = jax.tree.map(lambda u, b: (u * b) ** 2 / (2 * hp.eta), u, after.largest)
    price = lambda a, paid: jnp.sum(a * (d**0.5 * paid + hp.eta / d**0.5))
    right = jnp.asarray(tree.sum(jax.tree.map(price, adagrad_level(own, after), paid)))
    t = account.regret.rounds.now
    worst = own.lipschitz * jnp.sqrt(d * (t + 1)) * (tree.sum(paid) + hp.eta)
    return _add_sides(account, feedback, u, own.lipschitz, right, worst)


def add_pnorm(
    hp: FTRLHparams, account: Account, state: FTRLState, feedback: Feedback, u: PyTree
) -> Account:
    after, own = hp.regularizer.update(state.stats, feedback), hp.regularizer.hparams
    size = jnp.asarray(tree.vdot(jax.tree.map(jnp.abs, u), after.largest))
    factor, p = size**2 / (2 * hp.eta) + hp.eta, exponent(after)
    t = account.regret.rounds.now
    worst = own.lipschitz * jnp.sqrt(jnp.e * (t + 1) * (p - 1))
    return _add_sides(
        account, feedback, u, own.lipschitz, pnorm_level(own, after) * factor, worst * factor
    )


def _add_sides(
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


def _regret(number: str, add: Callable[..., Account]) -> Theorem:
    source = f"Orabona et al. 2015, theorem 1 {number}"
    return Theorem("scale_invariant_regret", source, open_account, add, both_sides)


adagrad_regret = _regret("(13)", add_adagrad)
pnorm_regret = _regret("(12)", add_pnorm)
