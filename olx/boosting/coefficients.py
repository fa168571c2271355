r"""Boosters that weigh examples by the exponential loss: AdaBoost and three other coefficients.

$$p_{t,i} \propto q_i\, e^{-\sum_{s < t} \alpha_s v_{s,i}}, \qquad v_{t,i} = y_i h_t(x_i).$$

They are Hedge over the examples, with rounds of weight $\alpha_t$, and differ in the coefficient:

- `adaboost`, for hypotheses $\pm 1$: $\alpha_t = \min\{c, \frac12 \ln (W_t^+ / W_t^-)\}$, with
  $W_t^+$ and $W_t^-$ the weights of the examples that $h_t$ classifies correctly and wrongly, and
  no cap $c$ in the plain form. A hypothesis may abstain by 0. It is the locally optimal rule of the
  primal-dual framework, with the largest step $c$.
- `line_search`, for real hypotheses: $\alpha_t = \arg\min_{0 \le \alpha \le c} \sum_i p_{t,i}
  e^{-\alpha v_{t,i}}$. The logarithm of the sum is convex. Its derivative is minus the mean of $v$
  under the weights after the step, which a root finder makes 0. For $\pm 1$ it is AdaBoost.
- `gentleboost`, for real hypotheses: $\alpha_t = [\langle p_t, v_t\rangle]_+$, twice the edge. For
  hypotheses $\pm 1$ it is the least squares fit of the labels by $\alpha h_t$. It needs no
  logarithm, so a hypothesis without an error has a finite coefficient.
- `majority`, for a known edge $\gamma$: $\alpha_t = 2 \gamma$. It is the subgradient rule of the
  primal-dual framework with $c = 1 / (2 \gamma)$, on the loss $[\langle w, v_t\rangle]_+$ and the
  entropy. `olx.dual_ascent` plays a score of a row that it sees before it acts. Here the row $v_t$
  answers the weights, so the rule is stated as Hedge.

A hypothesis without a positive edge has the coefficient 0.

With votes $f(x) = \sum_t \alpha_t h_t(x)$ and the first weights $q$, the weighted training error is
at most the exponential loss, which every round multiplies by $\sum_i p_i e^{-\alpha v_i}$,

$$\sum_{i : y_i f(x_i) \le 0} q_i \le \sum_i q_i e^{-y_i f(x_i)}, \qquad
  \ln \sum_i p_i e^{-\alpha v_i} \le \frac{a^2}2 - a \langle p, v\rangle .$$

For a given coefficient $\alpha \ge 0$ the second inequality holds with $a = \alpha$ (Hoeffding's
lemma). A rule that is at least as good as each $\alpha \le c$ has it with $a = \min(c, \langle p,
v\rangle)$. If every edge $\frac12 \langle p_t, v_t\rangle$ is at least $\gamma$, and $a = 2 \gamma$
or $a = \langle p, v\rangle$, then after $T$ rounds the loss is at most $e^{-2 \gamma^2 T}$.

A round of weight $h \le 1$ has the coefficient $h \alpha$, and $h$ times the right side.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.12), (6.5) and
section 6.1; Freund, Schapire, A Decision-Theoretic Generalization of On-Line Learning and an
Application to Boosting, 1997; Schapire, Singer, Improved Boosting Algorithms Using Confidence-rated
Predictions, 1999.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedValue, public
from olx._words import as_given
from olx.boosting.booster import BoosterHparams, Coefficient, weighted
from olx.certificate import Certificate
from olx.convex.roots import root
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.frameworks.omd import hedge
from olx.needs import Need
from olx.theorem import Theorem


@public
def adaboost(cap: Scalar | None = None) -> Learner:
    r"""AdaBoost for hypotheses of -1 and +1, and 0 where a hypothesis abstains.

    cap: the largest coefficient; $2 \gamma$ for a weak learner with the edge $\gamma$. Without it a
        hypothesis that makes no error, whose coefficient would be infinite, has that of an error of
        the size of rounding: 18 in double precision, 8 in single precision.

    For real hypotheses there are `line_search` and `gentleboost`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]] * 20))
    >>> uniform = jnp.ones(3) / 3
    >>> learner = olx.boosting.adaboost()
    >>> proof = olx.certify(learner, olx.losses.linear_loss, rounds, uniform, uniform)
    >>> bool(proof.holds)
    True
    """
    remedy = "take `olx.boosting.line_search` or `olx.boosting.gentleboost` for real hypotheses"
    need = Need("outcome", _are_signs, "y * h(x) must be -1, 0 or +1", "adaboost", remedy)
    return _exponential("adaboost", _exact(cap, adaboost_alpha), need)


@public
def line_search(cap: Scalar | None = None) -> Learner:
    r"""Boosting with the best coefficient, for hypotheses in [-1, 1].

    cap: the largest coefficient. Without it a hypothesis that is wrong on no example, whose
        coefficient would be infinite, has $\frac12 \ln(1 / \epsilon)$, with $\epsilon$ the rounding
        error, divided by its largest value.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -0.5, 1.0], [0.2, 1.0, -0.3]]))
    >>> run = olx.rollout(line_search(), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.5, 0.65]
    """
    return _exponential("line_search", _exact(cap, line_search_alpha))


@public
def gentleboost() -> Learner:
    """GentleBoost, for hypotheses in [-1, 1].

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -0.5, 1.0], [0.2, 1.0, -0.3]]))
    >>> run = olx.rollout(gentleboost(), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.5, 0.49]
    """
    return _exponential("gentleboost", Coefficient(None, gentleboost_alpha, capped_pace))


@public
def majority(gamma: Scalar) -> Learner:
    r"""Boosting by majority vote for weak learners with an edge of at least `gamma`.

    gamma: in (0, 1/2); the weighted error of every hypothesis is at most $1/2 - \gamma$.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]))
    >>> run = olx.rollout(majority(0.1), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.333, 0.427]
    """
    gamma = _promised_edge(gamma)
    rule = Coefficient(gamma, majority_alpha, majority_pace, promised_gamma)
    return _exponential("majority", rule)


def _exponential(owner: str, coefficient: Coefficient, *needs: Need) -> Learner:
    return weighted(owner, hedge(2.0), coefficient, *EXPONENTIAL, needs=needs)


def adaboost_alpha(cap: Scalar | None, p: Array, v: Array) -> Array:
    right, wrong = (jnp.sum(jnp.where(side, p, 0.0)) for side in (v > 0, v < 0))
    ratio = safe.divide(right, wrong, 1.0, (wrong > 0) & (right > 0))
    best = jnp.where(wrong > 0, jnp.log(ratio) / 2, _rounding_error(p))
    best = best if cap is None else jnp.minimum(best, cap)
    return jnp.where(right > wrong, best, 0.0)


def line_search_alpha(cap: Scalar | None, p: Array, v: Array) -> Array:
    edge, errs = jnp.vdot(p, v), jnp.any((p > 0) & (v < 0))
    top = jnp.max(jnp.where(p > 0, v, 0.0))
    free = jnp.where(errs, jnp.inf, _rounding_error(p) / jnp.where(top > 0, top, 1.0))
    end = free if cap is None else jnp.asarray(cap, p.dtype)
    ahead = edge > 0
    end, scores = jnp.where(ahead, end, 1.0), jnp.where(ahead, v, 0.0)  # no search without an edge
    start = jnp.minimum(jnp.where(ahead, edge, 0.0), end)
    best = root(Partial(minus_mean, p, scores), jnp.zeros_like(start), end, start)
    # At the end of the bracket the coefficient does not depend on the hypothesis.
    return jnp.where(ahead, jnp.where(best < end, best, end), 0.0)


def minus_mean(p: Array, v: Array, alpha: Array) -> Array:
    """Minus the mean of v under the weights after a step of length alpha."""
    least = jnp.min(jnp.where(p > 0, v, 1.0))
    tilted = p * jnp.exp(-alpha * jnp.maximum(v - least, 0.0))
    return -jnp.sum(tilted * v) / jnp.sum(tilted)


def gentleboost_alpha(cap: None, p: Array, v: Array) -> Array:
    return capped_pace(cap, jnp.vdot(p, v))


def majority_alpha(gamma: Scalar, p: Array, v: Array) -> Array:
    return majority_pace(gamma, jnp.vdot(p, v))


def majority_pace(gamma: Scalar, edge: Array) -> Array:
    return jnp.where(edge > 0, 2 * jnp.asarray(gamma, edge.dtype), 0.0)


def promised_gamma(gamma: Scalar) -> Scalar:
    return gamma


def _exact(cap: Scalar | None, alpha_fn: Callable[..., Array]) -> Coefficient:
    """The best coefficient up to `cap`, with its theorem; there may be no cap."""
    cap = None if cap is None else check.positive("cap", cap)
    return Coefficient(cap, alpha_fn, capped_pace, None if cap is None else half_cap)


def capped_pace(cap: Scalar | None, edge: Array) -> Array:
    """The step of the bound: the edge, but at most the cap."""
    ahead = jnp.maximum(edge, 0.0)
    return ahead if cap is None else jnp.minimum(ahead, cap)


def half_cap(cap: Scalar) -> Scalar:
    """The edge for which the cap is twice the edge."""
    return cap / 2


def _rounding_error(p: Array) -> float:
    """The coefficient of a hypothesis whose error is the rounding error."""
    return -float(np.log(jnp.finfo(p.dtype).eps)) / 2


def _are_signs(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(lambda v: (v == 1) | (v == -1) | (v == 0), rounds.outcome)


def _promised_edge(gamma: Scalar) -> Scalar:
    """An edge in (0, 1/2): weighted errors of at most 1/2 - gamma, which are above 0."""
    try:
        rest = check.positive("gamma", 0.5 - check.positive("gamma", gamma))
        return as_given(gamma + 0 * rest, gamma)  # NaN if it is traced and not legal
    except ValueError:
        raise RefusedValue(
            f"`gamma` must lie in (0, 0.5), got {gamma}: it is the edge 1/2 - error that "
            "every hypothesis has; `olx.boosting.adaboost` needs no such number."
        ) from None


EDGE = "every edge must be at least the promised `gamma`"
LIGHT = "weights of rounds must be at most 1"


class Account(NamedTuple):
    first: Float[Array, " N"]  # q
    votes: Float[Array, " N"]  # y f(x)
    size: Float[Array, ""]  # the sum of coefficients
    bound: Float[Array, ""]  # the sum of a^2 / 2 - a <p, v>
    least: Float[Array, ""]  # the smallest edge so far
    rounds: Float[Array, ""]  # the sum of weights
    last: tuple[Array, Array]  # both sides of the inequality of the last round
    light: Bool[Array, ""]


def open_account(hp: BoosterHparams, state: PyTree, u: PyTree) -> Account:
    q, _ = ravel_pytree(hp.inner.predict(state))
    zero = jnp.zeros((), q.dtype)
    most = jnp.asarray(jnp.inf, q.dtype)
    return Account(q, jnp.zeros_like(q), zero, zero, most, zero, (zero, zero), jnp.ones((), bool))


def add_round(
    hp: BoosterHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    (p, _), (v, _) = ravel_pytree(feedback.action), ravel_pytree(feedback.outcome)
    rule, edge = hp.coefficient, jnp.vdot(p, v)
    assert rule.pace_fn is not None  # only boosters with a pace carry these theorems
    alpha = feedback.weight * rule.alpha(p, v)
    a = rule.pace_fn(rule.hparams, edge)
    votes = account.votes + alpha * v
    change = _log_loss(account._replace(votes=votes)) - _log_loss(account)
    bound = feedback.weight * (a**2 / 2 - a * edge)
    return Account(
        account.first,
        votes,
        account.size + alpha,
        account.bound + bound,
        jnp.minimum(account.least, edge / 2),
        account.rounds + feedback.weight,
        (change, bound),
        account.light & (feedback.weight <= 1),
    )


def loss_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The logarithm of the exponential loss; `published` is $-2 \gamma^2 T$."""
    scale = 1 + account.size + account.rounds
    sides = _log_loss(account), account.bound, scale, _published(hp, account)
    return _given(hp, account, Certificate(*sides))


def error_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The training error, the exponential loss, and $e^{-2 \gamma^2 T}$."""
    wrong = jnp.sum(jnp.where(account.votes <= 0, account.first, 0.0))
    loss, scale = jnp.exp(_log_loss(account)), 1 + account.size + account.rounds
    return _given(hp, account, Certificate(wrong, loss, scale, jnp.exp(_published(hp, account))))


def round_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The change of the logarithm of the loss in the last round, and $a^2 / 2 - a \langle p,
    v\rangle$. The change is that of the votes; it is $\ln \sum_i p_i e^{-\alpha v_i}$ if the
    weights $p$ that were played are those of the loss."""
    change, bound = account.last
    return Certificate(change, bound, 1 + account.size).given(LIGHT, account.light)


def _log_loss(account: Account) -> Array:
    """The logarithm of the exponential loss."""
    return logsumexp(-account.votes, b=account.first)


def _published(hp: BoosterHparams, account: Account) -> Array:
    r"""$-2 \gamma^2 T$, with the promised edge, or else the smallest one."""
    promise = hp.coefficient.promised_fn
    gamma = account.least if promise is None else promise(hp.coefficient.hparams)
    return -2 * jnp.maximum(gamma, 0.0) ** 2 * account.rounds


def _given(hp: BoosterHparams, account: Account, proof: Certificate) -> Certificate:
    proof = proof.given(LIGHT, account.light)
    promise = hp.coefficient.promised_fn
    if promise is None:
        return proof
    rounding = 64 * float(jnp.finfo(account.least.dtype).eps)
    return proof.given(EDGE, account.least >= promise(hp.coefficient.hparams) - rounding)


_SOURCE = "Shalev-Shwartz 2007, section 6.1"
training_error = Theorem("training_error", _SOURCE, open_account, add_round, error_sides)
exponential_loss = Theorem("exponential_loss", _SOURCE, open_account, add_round, loss_sides)
each_round = Theorem("each_round", _SOURCE, open_account, add_round, round_sides)
EXPONENTIAL = (each_round, exponential_loss, training_error)
