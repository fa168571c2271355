r"""Regret: the loss of a run minus that of a comparator, after every round.

A comparator has parameters $u$ and a model $h$; in round $t$ it plays $h_u(x_t)$. With weights
$c_t$

$$R_t(u) = \sum_{s \le t} c_s \big( \ell(a_s, y_s) - \ell(h_u(x_s), y_s) \big).$$

The regret on an interval is the difference of two values of the curve.

The regret to expert $i$ after $t$ rounds is $R_{t,i} = \sum_{s \le t} I_{s,i} (\hat\ell_s -
\ell_{s,i})$. The regret to a mixture is $\langle u, R_t\rangle$, to the $\varepsilon$-quantile the
$\lceil \varepsilon N\rceil$-th largest $R_{t,i}$.

A shifting comparator plays $u_t$ instead of $u$; regret bounds then grow with its variation
$\sum_t \|u_t - u_{t-1}\|$. A sequence of non-negative vectors $u_1, \dots, u_T$ has the variation
$V = \sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$, and is a weighted sum of intervals of
total weight $V$. Theorems about comparators that change depend on it; see `olx.theorems.changing`.

Shalev-Shwartz, Online Learning and Online Convex Optimization, 2012, section 1; Luo, Optimal and
Adaptive Online Learning, 2016, chapter 2, lemma 5.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import NotKept
from olx._refusal import RefusedType, RefusedValue, public
from olx.convex import norms
from olx.convex.norms import Norm
from olx.core import Learner, Loss, Rounds, Run
from olx.experts.account import unit_of
from olx.experts.base import ExpertHparams, seen
from olx.experts.quantiles import rank_of
from olx.trace_checks import trace_of

Model = Callable[[PyTree, PyTree], PyTree]


class Interval(NamedTuple):
    """The rounds from `start` up to, not including, `stop`, and the regret on them."""

    start: Array
    stop: Array
    regret: Array


def itself(u: PyTree, context: PyTree) -> PyTree:
    """The model that plays `u` itself."""
    return u


@public
def regret(
    run: Run, loss: Loss, rounds: Rounds, u: PyTree, apply: Model = itself
) -> Float[Array, " T"]:
    """The regret of a run, or of each run of a sweep, to `u` after every round.

    apply: `(u, context) -> action`: `itself` plays `u`; or a model such as `olx.dot`.

    >>> import jax.numpy as jnp
    >>> from olx.core import Rounds, Run
    >>> run = Run(state=None, losses=jnp.array([0.5, 0.5, 0.5]))
    >>> rounds = Rounds(None, jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> regret(run, jnp.dot, rounds, jnp.array([0.0, 1.0])).tolist()
    [0.5, 1.0, 0.5]
    """
    return _curve(run, rounds, _losses(loss, apply, u, rounds, None))


@public
def shifting_regret(
    run: Run, loss: Loss, rounds: Rounds, us: PyTree, apply: Model = itself
) -> Float[Array, " T"]:
    """The regret to a comparator that plays `us[t]` in round t.

    us: parameters with a leading axis of rounds on every leaf.
    """
    return _curve(run, rounds, _losses(loss, apply, us, rounds, 0))


@public
def comparator_losses(
    loss: Loss, rounds: Rounds, u: PyTree, apply: Model = itself
) -> Float[Array, " T"]:
    """The loss of `u` in every round, not multiplied by weights."""
    return _losses(loss, apply, u, rounds, None)


@public
def interval_regret(curve: Float[Array, " T"], start: int, stop: int) -> Array:
    """The regret on the rounds from `start` up to, not including, `stop`."""
    padded = _padded(curve)
    if not all(isinstance(at, int | np.integer | jax.Array) for at in (start, stop)):
        seen = f"{check.quote(start)} and {check.quote(stop)}"
        raise RefusedType(f"`start` and `stop` must be integers, got {seen}.")
    if not isinstance(start, jax.Array | bool) and not 0 <= start <= stop < padded.shape[-1]:
        raise RefusedValue(
            f"there are {padded.shape[-1] - 1} rounds, got those from {start} to "
            f"{stop}; give 0 <= start <= stop."
        )
    return padded[..., stop] - padded[..., start]


@public
def worst_interval(curve: Float[Array, " T"]) -> Interval:
    """The interval of largest regret to the comparator of `curve`.

    >>> import jax.numpy as jnp
    >>> worst = worst_interval(jnp.cumsum(jnp.array([1.0, -3.0, 2.0, 2.0, -1.0])))
    >>> int(worst.start), int(worst.stop), float(worst.regret)
    (2, 4, 4.0)
    """
    padded = _padded(curve)
    least = jax.lax.cummin(padded, axis=padded.ndim - 1)[..., :-1]
    gains = padded[..., 1:] - least
    last = jnp.argmax(gains, axis=-1)
    rounds = jnp.arange(curve.shape[-1])
    before = jnp.where(rounds <= last[..., None], padded[..., :-1], jnp.inf)
    return Interval(jnp.argmin(before, axis=-1), last + 1, jnp.max(gains, axis=-1))


@public
def variation(us: PyTree, norm: Norm | None = None) -> Array:
    r"""$\sum_{t \ge 2} \|u_t - u_{t-1}\|$, Euclidean if `norm` is None."""
    norm = norms.l2() if norm is None else norm
    check.instance("norm", norm, Norm)
    check_sequence(us)
    return jnp.sum(jax.vmap(norm.primal)(jax.tree.map(lambda u: jnp.diff(u, axis=0), us)))


@public
def shifts(us: PyTree) -> Array:
    """The number of rounds in which a comparator changes."""
    check_sequence(us)
    changed = lambda u: jnp.any((u[1:] != u[:-1]).reshape(u.shape[0] - 1, -1), axis=1)
    return jnp.sum(jnp.any(jnp.stack([changed(u) for u in jax.tree.leaves(us)]), axis=0))


def check_sequence(us: PyTree) -> None:
    check.numbers("us", us)
    if any(np.ndim(leaf) == 0 for leaf in jax.tree.leaves(us)):
        raise RefusedType("`us` holds a number; every leaf needs a leading axis of rounds.")


def weights(rounds: Rounds, dtype: DTypeLike) -> Float[Array, " T"]:
    """The weight of every round; 1 if none is given."""
    if rounds.weight is not None:
        return jnp.asarray(rounds.weight, dtype)
    return jnp.ones(jax.tree.leaves(rounds)[0].shape[0], dtype)


def _losses(loss: Loss, apply: Model, u: PyTree, rounds: Rounds, axis: int | None) -> Array:
    """The losses of a comparator; refuses one that does not have one number per round.

    axis: of rounds in `u`; None if it plays the same `u` in all rounds.
    """
    check.instance("rounds", rounds, Rounds)
    play = lambda u, one: loss(apply(u, one.context), one.outcome)
    try:
        losses = jax.vmap(play, (axis, 0))(u, rounds)
    except (TypeError, ValueError) as error:
        raise RefusedType(f"{_why(apply, u, rounds)} ({str(error).splitlines()[0]}).") from error
    if losses.ndim != 1:
        raise RefusedType(f"{_why(apply, u, rounds)}.")
    return losses


def _why(apply: Model, u: PyTree, rounds: Rounds) -> str:
    shape = lambda tree, start: [np.shape(leaf)[start:] for leaf in jax.tree.leaves(tree)]
    if apply is itself and rounds.context is not None:
        return (
            "the comparator plays `u` itself, and the loss takes a score; give the model as "
            "`apply`, such as `apply=olx.dot`"
        )
    return (
        f"`u` of shape {shape(u, 0)} does not give one loss per round with rows of shape "
        f"{shape(rounds.context, 1)} and outcomes of shape {shape(rounds.outcome, 1)}; give a "
        "comparator of the shape of the decision"
    )


def _curve(run: Run, rounds: Rounds, losses: Array) -> Array:
    check.instance("run", run, Run)
    if isinstance(run.losses, NotKept | None):
        raise RefusedType("the run kept no losses; play it without `keep`.")
    return jnp.cumsum(weights(rounds, losses.dtype) * (run.losses - losses), axis=-1)


def _padded(curve: Float[Array, "... T"]) -> Float[Array, "... T1"]:
    check.array("curve", curve, *range(1, 9))
    return jnp.concatenate([jnp.zeros_like(curve[..., :1]), curve], axis=-1)


@public
def expert_regrets(learner: Learner, run: Run) -> Float[Array, "T N"]:
    """The regret of a run to every expert after every round, scaled by confidences and weights.

    run: a run of a learner of `olx.experts`, played with `record=olx.record.trace`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> learner = olx.experts.two_norm()
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(2), record=olx.record.trace
    ... )
    >>> expert_regrets(learner, run).round(2).tolist()
    [[-0.5, 0.5], [-0.5, 0.5]]
    """
    check.instance("learner", learner, Learner)
    if not isinstance(learner.hparams, ExpertHparams):
        raise RefusedType(
            "`learner` must be one of `olx.experts` that see all losses, got one "
            f"of `{learner.update_fn.__module__}`."
        )
    trace, hp = trace_of(learner, run), learner.hparams
    regrets = jax.vmap(lambda state, feedback: seen(hp, state, feedback).regret)(*trace)
    return unit_of(hp) * jnp.cumsum(regrets, axis=0)


@public
def quantile_regret(regrets: Float[Array, "T N"], epsilon: float) -> Float[Array, " T"]:
    r"""Regret to the $\lceil \varepsilon N\rceil$-th best expert, after every round.

    epsilon: above 0 and up to 1; 1/N or less gives the regret to the best expert.
    """
    check.array("regrets", regrets, 2)
    rank = rank_of(regrets.shape[1], epsilon)
    return -jnp.sort(-regrets, axis=1)[:, rank - 1]


class Piece(NamedTuple):
    """An interval, the rounds from `start` up to, not including, `stop`, and its weight."""

    weight: float
    start: int
    stop: int


@public
def upward_variation(us: PyTree) -> Array:
    r"""$\sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$."""
    check_sequence(us)
    flat = jax.vmap(lambda u: ravel_pytree(u)[0])(us)
    before = jnp.concatenate([jnp.zeros_like(flat[:1]), flat[:-1]])
    return jnp.sum(jnp.maximum(flat - before, 0.0))


@public
def intervals(sequence: Float[Array, " T"]) -> list[Piece]:
    """A non-negative sequence as a weighted sum of intervals, of least total weight (lemma 5).

    >>> intervals(np.array([1.0, 3.0, 2.0, 0.0, 1.0]))
    [Piece(weight=1.0, start=0, stop=3), Piece(weight=1.0, start=1, stop=3), \
Piece(weight=1.0, start=1, stop=2), Piece(weight=1.0, start=4, stop=5)]
    """
    given = np.asarray(sequence)
    check.array("sequence", given, 1)
    given = check.non_negative("sequence", given.astype(float), each=True)
    pieces, unfinished = [], [(0.0, 0)]  # open intervals: their level and start
    for t, value in enumerate([*given.tolist(), 0.0]):
        while unfinished[-1][0] > value:
            top, start = unfinished.pop()
            bottom = max(unfinished[-1][0], value)
            pieces.append(Piece(top - bottom, start, t))
            if bottom > unfinished[-1][0]:
                unfinished.append((bottom, start))
        if unfinished[-1][0] < value:
            unfinished.append((value, t))
    return sorted(pieces, key=lambda piece: (piece.start, -piece.stop))
