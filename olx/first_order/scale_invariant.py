r"""Scale-invariant linear predictors: multiplying a feature by a constant changes no prediction.

Two of them follow the regularized leader, AdaGrad with `olx.regularizers.scale_invariant_adagrad`
and the p-norm learner with `olx.regularizers.scale_invariant_pnorm`, which suits many features with
few non-zeros per row. Their regret bounds depend on $\sum_i (u_i b_{t,i})^2$ and on $U_t = \sum_i
|u_i| b_{t,i}$, which do not change with the scale of a feature either. For rounds of weight 1 and
losses $L$-Lipschitz in the score, $\sum_{s \le t} \ell_s(w_s) - \ell_s(u)$ is at most

$$\text{AdaGrad: } \sum_i a_{t+1,i} \Big( \frac{\sqrt d (u_i b_{t,i})^2}{2\eta} +
  \frac{\eta}{\sqrt d} \Big)
  \le L \sqrt{d (t+1)} \Big( \frac{\sum_i (u_i b_{t,i})^2}{2\eta} + \eta \Big),$$
$$\text{p-norm: } \beta_{t+1} \Big( \frac{U_t^2}{2\eta} + \eta \Big)
  \le L \sqrt{e (t+1)(p_t - 1)} \Big( \frac{U_t^2}{2\eta} + \eta \Big).$$

`normalized_adagrad`, the default learner of Vowpal Wabbit (NAG), plays $\hat y_t = \langle w_t, x_t
\rangle$ with a step size per coordinate that adapts to the scale of its feature. With $s_{t,i} =
\max_{r \le t} |x_{r,i}|$, which includes $x_t$, the slope $\ell'_t$ of the loss at $\hat y_t$, and
rounds of importance $p_t$,

$$G_{t,i} = \sum_{r \le t} p_r (\ell'_r x_{r,i})^2, \qquad
  N_t = \sum_{r \le t} p_r \sum_i \frac{x_{r,i}^2}{s_{r,i}^2}, \qquad
  c_{t,i} = \sqrt{\frac{\sum_{r \le t} p_r}{N_t}}\, \frac{x_{t,i}}{s_{t,i} \sqrt{G_{t,i}}}.$$

A step along $-c_t$ changes the score by $q_t = \langle c_t, x_t \rangle$ per unit. Steps are safe:

$$w_{t+1} = w_t - \ell'_t\, \frac{1 - e^{-\kappa \eta p_t q_t}}{\kappa q_t}\, c_t.$$

For a loss of curvature $\kappa$ in the score, such as the squared loss with $\kappa = 1$, this is
where infinitely many small steps on the same row lead: the score does not pass the label, and one
round of importance 2 is like two rounds. For small $\eta$ it is the step $\eta p_t \ell'_t c_t$.

If $|x_{t,i}|$ is a new maximum, $w_i$ is first multiplied by $s_{t-1,i} / s_{t,i}$. The state keeps
$v_i = w_i s_i$, which this does not change.

Vowpal Wabbit computes the slope at a score that is clipped to the range of the labels; for labels
of -1 and +1 that is the slope of `olx.losses.modified_huber`. It differs from the paper, and from
this page, in two details: $w_i$ is multiplied after the score of a new maximum and not before it,
and $N_t$ does not count rounds of slope 0.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1; Ross, Mineiro, Langford, Normalized Online Learning,
2013, algorithm 2; Karampatziakis, Langford, Online Importance Weight Aware Updates, 2011, for the
steps of NAG.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks import accounts
from olx.frameworks.accounts import Regret
from olx.frameworks.ftrl import FTRLHparams, FTRLState, ftrl
from olx.regularizers import scale_invariant_adagrad as adagrad_regularizer
from olx.regularizers import scale_invariant_pnorm as pnorm_regularizer
from olx.regularizers.scale_invariant import adagrad_level, exponent, pnorm_level
from olx.theorem import Theorem


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
    return ftrl(eta, pnorm_regularizer(lipschitz)).carrying(pnorm_regret)


class Account(NamedTuple):
    """The account of both scale-invariant learners."""

    regret: Regret
    right: Float[Array, ""]  # after the last round, like `published`
    published: Float[Array, ""]
    lipschitz: Bool[Array, ""]  # whether |g_i| <= L |x_i| in every round and coordinate


def open_account(hp: FTRLHparams, state: FTRLState, u: PyTree) -> Account:
    regret = accounts.open_regret(state.theta.value, u)
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
    return Account(accounts.add_regret(account.regret, feedback, u), right, published, met)


def both_sides(hp: FTRLHparams, account: Account, u: PyTree) -> Certificate:
    proof = accounts.regret_sides(account.regret, account.right, account.published)
    return proof.given("slopes in the score must be at most `lipschitz`", account.lipschitz)


def _regret(number: str, add: Callable[..., Account]) -> Theorem:
    source = f"Orabona et al. 2015, theorem 1 {number}"
    return Theorem("scale_invariant_regret", source, open_account, add, both_sides)


adagrad_regret = _regret("(13)", add_adagrad)
pnorm_regret = _regret("(12)", add_pnorm)


@pytree
class NAGHparams:
    eta: Scalar
    curvature: Scalar


class NAGState(NamedTuple):
    v: PyTree  # the weights times the largest features
    largest: PyTree  # s
    squares: PyTree  # G
    norms: Sum  # N
    weight: Sum  # of all rounds


@public
def normalized_adagrad(eta: Scalar, curvature: Scalar = 1.0) -> Learner:
    r"""A linear predictor with adaptive, normalized and safe steps.

    eta: positive; a number near 0.5 suits most data, whatever the scales of features and loss.
    curvature: $\kappa$, positive: of the loss in the score, or an upper bound of it; 1 for
        `squared` and `modified_huber`, 1/4 for `logistic`.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.first_order.normalized_adagrad(0.5)
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    eta = check.positive("eta", eta)
    curvature = check.positive("curvature", curvature)
    facts = Facts(coordinates=Rowwise())
    return Learner(NAGHparams(eta, curvature), nag_init, nag_predict, nag_update, facts=facts)


def nag_init(hp: NAGHparams, params: PyTree) -> NAGState:
    zeros = tree.zeros_like(params)
    none = safe.start(jnp.zeros((), jnp.result_type(*jax.tree.leaves(params))))
    return NAGState(zeros, zeros, zeros, none, none)


@own_name("normalized_adagrad")
def nag_predict(hp: NAGHparams, state: NAGState, context: PyTree) -> Float[Array, ""]:
    check.same_shape("the context", context, "`params`", state.v)
    return jnp.asarray(tree.vdot(state.v, _scaled(context, _larger(state, context))))


def nag_update(hp: NAGHparams, state: NAGState, feedback: Feedback) -> NAGState:
    x, slope = feedback.context, feedback.grad
    largest = _larger(state, x)
    units = _scaled(x, largest)
    own = jnp.asarray(feedback.weight, state.weight.value.dtype)
    norms = safe.add(state.norms, own * tree.vdot(units, units))
    weight = safe.add(state.weight, own)
    squares = jax.tree.map(lambda past, x: past + own * (slope * x) ** 2, state.squares, x)
    level = safe.sqrt(safe.divide(weight.value, norms.value))
    steps = jax.tree.map(lambda x, g: level * safe.divide(x, safe.sqrt(g)), x, squares)  # c s
    q = jnp.asarray(tree.vdot(steps, units))
    size = slope * safe.divide(
        -jnp.expm1(-hp.curvature * hp.eta * own * q), hp.curvature * q, otherwise=hp.eta * own
    )
    v = jax.tree.map(lambda v, step: v - size * step, state.v, steps)
    return NAGState(v, largest, squares, norms, weight)


def _larger(state: NAGState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda s, x: jnp.maximum(s, jnp.abs(x)), state.largest, context)


def _scaled(values: PyTree, largest: PyTree) -> PyTree:
    return jax.tree.map(safe.divide, values, largest)
