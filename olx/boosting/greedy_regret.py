r"""What greedy base learners owe in linear losses: (B.5) and (B.6) of the source, see `greedy`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import as_tree
from olx.boosting import _radius, _stage_account
from olx.boosting.gradient_boost import stages_of as span_stages_of
from olx.boosting.gradient_boost_hull import HullHparams, steps_of
from olx.boosting.gradient_boost_hull import stages_of as hull_stages_of
from olx.boosting.greedy import GreedyHparams
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner
from olx.frameworks.lift import dot
from olx.theorem import About, Theorem, theorem

BASE = "`u` must be a base function: its predictions must not exceed `bound`"
FITS = "losses must be convex, with the smoothness of `loss`, at the greedy steps"


class Account(NamedTuple):
    linear: Float[Array, " n"]  # the regret of each copy in linear losses
    own: Float[Array, " n"]  # and in its own losses, times its alpha L
    squares: Float[Array, ""]  # the sum of f^2
    size: Float[Array, ""]
    rounds: Clock
    met: dict[str, Bool[Array, ""]]


def greedy_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    r"""The regret of the copy with the least slack, to $f$ = `apply(u, .)` divided by $W$.

    $W = \max(1, \|u\| / D)$ for `gradient_boost` and 1 for `gradient_boost_hull`.
    """
    check.takes("greedy_regret", "apply", apply, "u", "x")
    add, source = Partial(add_round, as_tree(apply)), "Luo 2016, (B.5) and (B.6)"
    return theorem("greedy_regret", source, open_account, add, both_sides, about=GREEDY)


def open_account(hp: Any, state: Any, u: PyTree) -> Account:
    rounds = clock.start(None, u)
    zeros = jnp.zeros(hp.n, rounds.dtype)
    met: dict[str, Array] = dict.fromkeys((UNIT_WEIGHTS, BASE, FITS), jnp.ones((), bool))
    return Account(zeros, zeros, zeros[0], zeros[0], rounds, met)


def add_round(
    apply: Partial, hp: Any, account: Account, state: Any, feedback: Feedback, u: PyTree
) -> Account:
    hull, loss = isinstance(hp, HullHparams), feedback.loss
    stages = (hull_stages_of if hull else span_stages_of)(hp, state, feedback.context)
    alpha = _alphas(hp, stages.votes)
    norm = 1.0 if hull else jnp.maximum(_stage_account.length(u) / hp.bound, 1.0)
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


def both_sides(hp: Any, account: Account, u: PyTree) -> Certificate:
    alpha, bend = _alphas(hp, account.own), _smooth(hp, account) / 2
    right = account.own / alpha + alpha * bend * account.squares
    most = jnp.maximum(jnp.max(account.own), 0.0) / alpha
    published = most + alpha * bend * hp.bound**2 * account.rounds.past
    at = jnp.argmin(right - account.linear)
    size = account.size + jnp.abs(right[at])
    return Certificate(account.linear[at], right[at], size, published[at]).under(account.met)


def _alphas(hp: Any, like: Array) -> Float[Array, " n"]:
    """alpha of each stage."""
    alpha = hp.inner.hparams.alpha
    if alpha is None:
        alpha = steps_of(hp, like.dtype) if isinstance(hp, HullHparams) else hp.eta
    return jnp.broadcast_to(jnp.asarray(alpha, like.dtype), like.shape)


def _smooth(hp: Any, account: Account) -> Array:
    reach = hp.bound if isinstance(hp, HullHparams) else hp.radius
    reach = jnp.asarray(reach, account.size.dtype) + _alphas(hp, account.own) * hp.bound
    return _radius.smooth(hp.loss, reach, hp.target)


def _is_greedy(learner: Learner) -> bool:
    base = getattr(learner.hparams, "inner", None)
    curved = learner.update_fn.__module__ != "olx.boosting.gradient_boost_linearized"
    boosts = learner.update_fn.__module__.startswith("olx.boosting.gradient_boost")
    return curved and boosts and isinstance(getattr(base, "hparams", None), GreedyHparams)


GREEDY = About("`gradient_boost` or `gradient_boost_hull` of `greedy` learners", _is_greedy)
