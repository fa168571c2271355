r"""Batch gradient boosting: add one hypothesis per round to fit targets, with or without shrinkage.

The action is the vector $f$ of predictions on $m$ rows, and the loss is $\ell(f) = \frac1m \sum_k
\ell(f(x_k), y_k)$. An oracle answers with the hypothesis that fits best, $g = \arg\min_{g \in F}
\ell(f + \eta g)$, where $F$ holds $-g$ with each $g$ and $|g| \le 1$. From $f_0 = 0$,

$$f_i = (1 - \sigma_i \eta_i) f_{i-1} + \eta_i g_i .$$

`stagewise` has $\sigma_i = 0$. `shrunken_stagewise` has $\sigma_i = 1$ if $\langle \nabla
\ell(f_{i-1}), f_{i-1}\rangle \ge 0$, else 0. For a $\beta$-smooth loss, $f$ in the span of $F$ with
coefficients of total size $\|f\|_1$, $\Delta_i = \ell(f_i) - \ell(f)$, $s_0 = 1$ and $s_i = s_{i-1}
+ \eta_i$,

$$\Delta_N \le \frac{s_0 + \|f\|_1}{s_N + \|f\|_1} \Delta_0 + \sum_{i \le N}
  \frac{s_i + \|f\|_1}{s_N + \|f\|_1} \frac\beta2 \eta_i^2 \qquad \text{(stagewise)},$$

$$\Delta_N \le e^{-(s_N - s_0) / \|f\|_1} \Delta_0 + \sum_{i \le N} e^{-(s_N - s_i) / \|f\|_1}
  \frac\beta2 \eta_i^2 (s_i^2 + 1) \qquad \text{(with shrinkage)}.$$

So the first term falls like $1 / s_N$, and with shrinkage exponentially.

Zhang, Yu, Boosting with Early Stopping: Convergence and Consistency, 2005; Luo, Optimal and
Adaptive Online Learning, 2016, (B.7) and (B.8).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.boosting.booster import in_unit
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Process, Scalar
from olx.schedules.fixed import as_schedule
from olx.theorem import About, Theorem

STEPS = "steps must be at most 1"
UNIT = "hypotheses must be at most 1 in mean square"
START = "`u` must be at least as good as the start"
NORM = "`norm` must be at least 1"
SMOOTH = "the loss must be `smoothness`-smooth"
ORACLE = "the oracle must fit as well as the hypotheses of `u` do on average"


@pytree
class StagewiseHparams:
    eta: Process
    shrinks: bool = static()


class StagewiseState(NamedTuple):
    f: PyTree
    stats: PyTree  # of the schedule


@public
def stagewise(eta: Scalar | Process) -> Learner:
    r"""Add $\eta_i g_i$ in each round; the form of Zhang and Yu.

    eta: the step, at most 1: a number or one of `olx.schedules`.

    An outcome is the vector of values of the hypothesis. Only the shape of `params` is used. See
    `olx.boosting.fit_stagewise`, and `olx.theorems.stagewise_loss` for the theorem.

    >>> import jax.numpy as jnp, olx
    >>> fit = lambda f, outcome: jnp.mean((f - jnp.array([1.0, -1.0])) ** 2)
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0]] * 3))
    >>> olx.rollout(stagewise(0.5), fit, rounds, jnp.zeros(2)).losses.tolist()
    [1.0, 0.25, 0.0]
    """
    return _learner("stagewise", eta, False)


@public
def shrunken_stagewise(eta: Scalar | Process) -> Learner:
    """The same with shrinkage: earlier hypotheses lose weight if their size does not pay.

    >>> import jax.numpy as jnp, olx
    >>> fit = lambda f, outcome: jnp.mean((f - jnp.array([1.0, -1.0])) ** 2)
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0]] * 3))
    >>> olx.rollout(shrunken_stagewise(0.75), fit, rounds, jnp.zeros(2)).losses.tolist()
    [1.0, 0.0625, 0.25]
    """
    return _learner("shrunken_stagewise", eta, True)


def _learner(owner: str, eta: Scalar | Process, shrinks: bool) -> Learner:
    if not isinstance(eta, Process):
        eta = check.above("eta", eta, 0.0, 1.0)
    hparams = StagewiseHparams(as_schedule("eta", eta), shrinks)
    return Learner(hparams, init, predict, update, needs=(in_unit(owner, "hypotheses"),))


def init(hp: StagewiseHparams, params: PyTree) -> StagewiseState:
    return StagewiseState(tree.zeros_like(params), hp.eta.init(params))


def predict(hp: StagewiseHparams, state: StagewiseState, context: PyTree) -> PyTree:
    return state.f


def update(hp: StagewiseHparams, state: StagewiseState, feedback: Feedback) -> StagewiseState:
    keep, step = factors(hp, state, feedback)
    f = jax.tree.map(lambda f, g: keep * f + step * g, state.f, feedback.outcome)
    return StagewiseState(f, hp.eta.update(state.stats, feedback))


def factors(hp: StagewiseHparams, state: StagewiseState, feedback: Feedback) -> tuple:
    r"""$1 - \sigma \eta$ and $\eta$."""
    step = feedback.weight * hp.eta.at(state.stats, feedback.context)
    pull = jnp.asarray(tree.vdot(feedback.grad, state.f))
    shrinks = (pull >= 0) & hp.shrinks
    return 1 - jnp.where(shrinks, step, 0.0), step


@public
def stagewise_loss(norm: Scalar, smoothness: Scalar) -> Theorem:
    r"""(B.7), or (B.8) for a learner with shrinkage, for the comparator `u`.

    `u` holds the values of the comparator on the rows.

    norm: $\|f\|_1$, the sum of the sizes of its coefficients.
    smoothness: $\beta$ of the loss of a score; 1 for $\frac12 (s - y)^2$.
    """
    norm = check.positive("norm", norm)
    smoothness = check.positive("smoothness", smoothness)
    parts = open_account, Partial(add_round, norm, smoothness), Partial(both_sides, norm)
    return Theorem("stagewise_loss", "Luo 2016, (B.7) and (B.8)", *parts, about=_STAGEWISE)


class Account(NamedTuple):
    bound: Float[Array, ""]  # the right side, times s + |f|_1 without shrinkage
    s: Float[Array, ""]
    left: Float[Array, ""]
    scale: Float[Array, ""]
    met: dict[str, Bool[Array, ""]]


def open_account(hp: StagewiseHparams, state: StagewiseState, u: PyTree) -> Account:
    one = jnp.ones((), ravel_pytree(state.f)[0].dtype)
    met = {name: jnp.ones((), bool) for name in (STEPS, UNIT, START, SMOOTH, ORACLE)}
    return Account(0 * one, one, 0 * one, one, met)


def add_round(
    norm: Scalar,
    smoothness: Scalar,
    hp: StagewiseHparams,
    account: Account,
    state: StagewiseState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    loss, here, half = feedback.loss, feedback.value, smoothness / 2
    _, step = factors(hp, state, feedback)
    after = update(hp, state, feedback).f
    slope = lambda d: jnp.asarray(tree.vdot(feedback.grad, d))
    square = lambda d: jnp.mean(ravel_pytree(d)[0] ** 2)
    first, start = account.s == 1, here - loss(u)
    rounding = 64 * jnp.finfo(here.dtype).eps * (1 + jnp.abs(here) + jnp.abs(start))
    s, moved = account.s + step, tree.sub(after, state.f)
    if hp.shrinks:
        before = jnp.where(first, start, account.bound)
        bound = jnp.exp(-step / norm) * before + half * step**2 * (s**2 + 1)
        wish = slope(u) / norm
    else:
        before = jnp.where(first, (1 + norm) * start, account.bound)
        bound = before + (s + norm) * half * step**2
        wish = slope(tree.sub(u, state.f)) / (norm + account.s)
    fits = loss(tree.add_scale(state.f, step, feedback.outcome))
    smooth = here + slope(moved) + half * square(moved)
    met = {
        STEPS: step <= 1,
        UNIT: square(feedback.outcome) <= 1 + rounding,
        START: ~first | (start >= -rounding),
        SMOOTH: loss(after) <= smooth + rounding,
        ORACLE: fits <= here + step * wish + half * step**2 + rounding,
    }
    met = {name: account.met[name] & now for name, now in met.items()}
    left = loss(after) - loss(u)
    return Account(bound, s, left, account.scale + jnp.abs(here) + jnp.abs(left), met)


def both_sides(norm: Scalar, hp: StagewiseHparams, account: Account, u: PyTree) -> Certificate:
    right = account.bound if hp.shrinks else account.bound / (account.s + norm)
    proof = Certificate(account.left, right, account.scale).under(account.met)
    return proof.given(NORM, norm >= 1) if hp.shrinks else proof


def _is_stagewise(learner: Learner) -> bool:
    return isinstance(learner.hparams, StagewiseHparams)


_STAGEWISE = About("`stagewise` or `shrunken_stagewise`", _is_stagewise)
