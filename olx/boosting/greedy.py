r"""A base learner that fits the loss itself, not its slope: the residual, for a squared loss.

In a stage of gradient boosting that starts from $y$, a copy pays $\ell'(y)\, a / L$ for its
prediction $a$. With `greedy` it pays, for a step $\alpha > 0$,

$$a \mapsto \frac{\ell(y + \alpha a)}{\alpha L},$$

which has the same slopes for small $\alpha$ and is as steep. For convex losses with smoothness
$\beta$ on $[-B', B']$, $B' = B + \alpha D$, the regret $R_i = \sum_s \ell_s'(y_s) (A_s - f_s)$ of
copy $i$ to a base function $f$ follows from that in its own losses, for rounds of weight 1:

$$R_i \le \frac1\alpha \sum_s \big( \ell_s(y_s + \alpha A_s) - \ell_s(y_s + \alpha f_s) \big) +
  \frac{\alpha \beta}2 \sum_s f_s^2 \le \frac{G}\alpha + \frac{\alpha \beta}2 D^2 t,$$

with $G$ the largest of these regrets, at least 0. The best step is
$\alpha = \sqrt{2 G / (\beta D^2 t)}$, which gives $R_i \le \sqrt{2 \beta D^2 t\, G}$ (B.5). If
$G = \alpha G'$, as for descent, it is $\alpha = 2 G' / (\beta D^2 t)$, and $R_i \le 2 G'$ (B.6).
`greedy_regret` is this theorem. It holds for each stage with its own $\alpha_i$. The step $e_i$ of
the stage makes copy $i$ fit what its prediction is used for, as long as the stage does not shrink
$y$. Where it does, the result is shrunk too: stages of `gradient_boost_hull` that all fit a target
$z$ exactly, with one $\alpha$, come to rest at $y = z / (1 + \alpha)$: a small $\alpha$ is better
there.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.4 and appendix B.2.1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.boosting import _stages
from olx.boosting._stages import Tangent
from olx.boosting.gradient_boost import GradientBoostHparams
from olx.boosting.gradient_boost import stages_of as span_stages_of
from olx.boosting.gradient_boost import update as span_update
from olx.boosting.gradient_boost_hull import HullHparams, steps_of
from olx.boosting.gradient_boost_hull import stages_of as hull_stages_of
from olx.boosting.gradient_boost_hull import update as hull_update
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import of_wrapper
from olx.frameworks.lift import dot
from olx.theorem import About, Theorem
from olx.wrapper import INNER, lift_needs


@pytree
class GreedyHparams:
    inner: Learner
    alpha: Scalar | Float[Array, " n"] | None  # None: the step of the stage


@public
def greedy(inner: Learner, alpha: Scalar | Float[Array, " n"] | None = None) -> Learner:
    r"""Let `inner`, a base learner of gradient boosting, fit the loss around the stage before it.

    inner: a predictor of real numbers.
    alpha: positive; one number, or one per stage, in a vector. If None, it is the step with which
        the booster adds the prediction of the stage: $\eta$ in `gradient_boost`, $2 / (i + 1)$ in
        stage $i$ of `gradient_boost_hull`.

    >>> import jax.numpy as jnp, olx
    >>> from olx.boosting import gradient_boost, greedy
    >>> weak = greedy(olx.linear(olx.ogd(0.5, olx.convex.sets.ball(0.5))))
    >>> learner = gradient_boost(weak, 5, 0.5, olx.losses.squared, bound=0.5)
    >>> rounds = olx.Rounds(jnp.ones((60, 1)), jnp.full(60, 0.5))
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(1))
    >>> bool(run.losses[-1] < 0.01 * run.losses[0])
    True
    """
    check.instance("inner", inner, Learner)
    if alpha is not None:
        by_stage = np.ndim(alpha) == 1
        alpha = check.positive("alpha", alpha, each=by_stage)
        alpha = jnp.asarray(alpha, float) if by_stage else alpha
    facts, needs = of_wrapper(inner), lift_needs(INNER, inner)
    return Learner(GreedyHparams(inner, alpha), init, predict, update, facts=facts, needs=needs)


def init(hp: GreedyHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: GreedyHparams, state: PyTree, context: PyTree) -> Array:
    return hp.inner.predict(state, context)


def update(hp: GreedyHparams, state: PyTree, feedback: Feedback) -> PyTree:
    tangent = _tangent(feedback)
    loss = Partial(ahead, tangent, _alpha(hp, tangent))
    value, grad = jax.value_and_grad(loss)(feedback.action)
    return hp.inner.update(state, feedback._replace(loss=loss, value=value, grad=grad))


def ahead(tangent: Tangent, alpha: Scalar, action: Array) -> Array:
    r"""$\ell(y + \alpha a) / (\alpha L)$."""
    return tangent.loss(tangent.offset + alpha * action) / (alpha * tangent.scale)


@own_name("greedy")
def _alpha(hp: GreedyHparams, tangent: Tangent) -> Scalar:
    """That of the stage."""
    if hp.alpha is None:
        return tangent.step
    if jnp.ndim(hp.alpha) == 0:
        return hp.alpha
    if jnp.shape(hp.alpha) != (tangent.n,):
        raise RefusedType(
            f"`alpha` has {jnp.size(hp.alpha)} numbers, but the booster has {tangent.n} "
            "stages; give one number per stage, or one for all."
        )
    return jnp.asarray(hp.alpha, tangent.step.dtype)[tangent.stage]


@own_name("greedy")
def _tangent(feedback: Feedback) -> Tangent:
    paid = getattr(feedback.loss, "args", ())
    if not paid or not isinstance(paid[0], Tangent):
        raise RefusedType(
            "plays only as the base learner of gradient boosting, which tells it where its "
            "stage starts; give it to `gradient_boost` as it is, and wrap `inner` instead of it."
        )
    return paid[0]


Hparams = GradientBoostHparams | HullHparams
BASE = "`u` must be a base function: its predictions must not exceed `bound`"
FITS = "losses must be convex, with the smoothness of `loss`, at the greedy steps"


class Account(NamedTuple):
    linear: Float[Array, " n"]  # the regret of each copy in linear losses
    own: Float[Array, " n"]  # and in its own losses, times its alpha L
    squares: Float[Array, ""]  # the sum of f^2
    size: Float[Array, ""]
    rounds: Clock
    met: dict[str, Bool[Array, ""]]


@public
def greedy_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    r"""The regret of the copy with the least slack, to $f$ = `apply(u, .)` divided by $W$.

    $W = \max(1, \|u\| / D)$ for `gradient_boost` and 1 for `gradient_boost_hull`.
    """
    parts = open_account, add_round, both_sides
    return _stages.theorem("greedy_regret", "Luo 2016, (B.5) and (B.6)", apply, parts, GREEDY)


def open_account(hp: Hparams, state: PyTree, u: PyTree) -> Account:
    rounds = clock.start(None, u)
    zeros = jnp.zeros(hp.n, rounds.dtype)
    met: dict[str, Array] = dict.fromkeys((UNIT_WEIGHTS, BASE, FITS), jnp.ones((), bool))
    return Account(zeros, zeros, zeros[0], zeros[0], rounds, met)


def add_round(
    apply: Partial,
    hp: Hparams,
    account: Account,
    state: PyTree,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    loss = feedback.loss
    if isinstance(hp, HullHparams):
        stages, norm = hull_stages_of(hp, state, feedback.context), 1.0
    else:
        stages = span_stages_of(hp, state, feedback.context)
        norm = jnp.maximum(_stages.length(u) / hp.bound, 1.0)
    alpha = _alphas(hp, stages.votes)
    f, y, votes = apply(u, feedback.context) / norm, stages.before, stages.votes
    here, slopes = jax.vmap(jax.value_and_grad(loss))(y)
    played, other = jax.vmap(loss)(y + alpha * votes), jax.vmap(loss)(y + alpha * f)
    bend = _smooth(hp, account) / 2 * (alpha * f) ** 2
    size = sum(map(jnp.abs, (here, played, other, bend))) + alpha * jnp.abs(slopes) * (
        jnp.abs(votes) + jnp.abs(f)
    )
    slack = 64 * jnp.finfo(size.dtype).eps * size
    low, high = here + alpha * slopes * votes, here + alpha * slopes * f + bend
    broken = {
        UNIT_WEIGHTS: jnp.asarray(feedback.weight) != 1,
        BASE: jnp.abs(f) > hp.bound * (1 + 64 * jnp.finfo(size.dtype).eps),
        FITS: jnp.any((played < low - slack) | (other > high + slack)),
    }
    return Account(
        account.linear + slopes * (votes - f),
        account.own + played - other,
        account.squares + f**2,
        account.size + jnp.max(size / alpha),
        clock.advance(account.rounds, True),
        {name: account.met[name] & ~bad for name, bad in broken.items()},
    )


def both_sides(hp: Hparams, account: Account, u: PyTree) -> Certificate:
    alpha, bend = _alphas(hp, account.own), _smooth(hp, account) / 2
    right = account.own / alpha + alpha * bend * account.squares
    most = jnp.maximum(jnp.max(account.own), 0.0) / alpha
    published = most + alpha * bend * hp.bound**2 * account.rounds.past
    at = jnp.argmin(right - account.linear)
    size = account.size + jnp.abs(right[at])
    return Certificate(account.linear[at], right[at], size, published[at]).under(account.met)


def _alphas(hp: Hparams, like: Array) -> Float[Array, " n"]:
    """alpha of each stage."""
    alpha = hp.inner.hparams.alpha
    if alpha is None:
        alpha = steps_of(hp, like.dtype) if isinstance(hp, HullHparams) else hp.eta
    return jnp.broadcast_to(jnp.asarray(alpha, like.dtype), like.shape)


def _smooth(hp: Hparams, account: Account) -> Array:
    reach = hp.bound if isinstance(hp, HullHparams) else hp.radius
    reach = jnp.asarray(reach, account.size.dtype) + _alphas(hp, account.own) * hp.bound
    return _stages.smooth(hp.loss, reach, hp.target)


def _is_greedy(learner: Learner) -> bool:
    base = getattr(learner.hparams, "inner", None)
    boosts = learner.update_fn in (span_update, hull_update)
    return boosts and isinstance(getattr(base, "hparams", None), GreedyHparams)


GREEDY = About("`gradient_boost` or `gradient_boost_hull` of `greedy` learners", _is_greedy)
