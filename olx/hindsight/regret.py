r"""Regret: the loss of a run minus that of a comparator, after every round.

A comparator has parameters $u$ and a model $h$; in round $t$ it plays $h_u(x_t)$. With weights
$c_t$

$$R_t(u) = \sum_{s \le t} c_s \big( \ell(a_s, y_s) - \ell(h_u(x_s), y_s) \big).$$

A shifting comparator plays $u_t$ instead of $u$; regret bounds then grow with its variation
$\sum_t \|u_t - u_{t-1}\|$. The regret on an interval is the difference of two values of the curve.

Shalev-Shwartz, Online Learning and Online Convex Optimization, 2012, section 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._not_kept import NotKept
from olx.convex import norms
from olx.convex.norms import Norm
from olx.core import Loss, Rounds, Run

Model = Callable[[PyTree, PyTree], PyTree]


class Interval(NamedTuple):
    """The rounds from `start` up to, not including, `stop`, and the regret on them."""

    start: Array
    stop: Array
    regret: Array


def itself(u: PyTree, context: PyTree) -> PyTree:
    """The model that plays `u` itself."""
    return u


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
    play = lambda u, one: loss(apply(u, one.context), one.outcome)
    losses = _losses("regret", jax.vmap(play, (None, 0)), apply, u, rounds)
    return _curve("regret", run, rounds, losses)


def shifting_regret(
    run: Run, loss: Loss, rounds: Rounds, us: PyTree, apply: Model = itself
) -> Float[Array, " T"]:
    """The regret to a comparator that plays `us[t]` in round t.

    us: parameters with a leading axis of rounds on every leaf.
    """
    play = lambda u, one: loss(apply(u, one.context), one.outcome)
    losses = _losses("shifting_regret", jax.vmap(play), apply, us, rounds)
    return _curve("shifting_regret", run, rounds, losses)


def comparator_losses(
    loss: Loss, rounds: Rounds, u: PyTree, apply: Model = itself
) -> Float[Array, " T"]:
    """The loss of `u` in every round, not multiplied by weights."""
    play = lambda u, one: loss(apply(u, one.context), one.outcome)
    return _losses("comparator_losses", jax.vmap(play, (None, 0)), apply, u, rounds)


def interval_regret(curve: Float[Array, " T"], start: int, stop: int) -> Array:
    """The regret on the rounds from `start` up to, not including, `stop`."""
    padded = _padded("interval_regret", curve)
    if not all(isinstance(at, int | np.integer | jax.Array) for at in (start, stop)):
        seen = f"{check.quote(start)} and {check.quote(stop)}"
        raise TypeError(f"interval_regret: `start` and `stop` must be integers, got {seen}.")
    if not isinstance(start, jax.Array | bool) and not 0 <= start <= stop < padded.shape[-1]:
        raise ValueError(
            f"interval_regret: there are {padded.shape[-1] - 1} rounds, got those from {start} to "
            f"{stop}; give 0 <= start <= stop."
        )
    return padded[..., stop] - padded[..., start]


def worst_interval(curve: Float[Array, " T"]) -> Interval:
    """The interval of largest regret to the comparator of `curve`.

    >>> import jax.numpy as jnp
    >>> worst = worst_interval(jnp.cumsum(jnp.array([1.0, -3.0, 2.0, 2.0, -1.0])))
    >>> int(worst.start), int(worst.stop), float(worst.regret)
    (2, 4, 4.0)
    """
    padded = _padded("worst_interval", curve)
    least = jax.lax.cummin(padded, axis=padded.ndim - 1)[..., :-1]
    gains = padded[..., 1:] - least
    last = jnp.argmax(gains, axis=-1)
    rounds = jnp.arange(curve.shape[-1])
    before = jnp.where(rounds <= last[..., None], padded[..., :-1], jnp.inf)
    return Interval(jnp.argmin(before, axis=-1), last + 1, jnp.max(gains, axis=-1))


def variation(us: PyTree, norm: Norm | None = None) -> Array:
    r"""$\sum_{t \ge 2} \|u_t - u_{t-1}\|$, Euclidean if `norm` is None."""
    norm = norms.l2() if norm is None else norm
    check.instance("variation", "norm", norm, Norm)
    check_sequence("variation", us)
    return jnp.sum(jax.vmap(norm.primal)(jax.tree.map(lambda u: jnp.diff(u, axis=0), us)))


def shifts(us: PyTree) -> Array:
    """The number of rounds in which a comparator changes."""
    check_sequence("shifts", us)
    changed = lambda u: jnp.any((u[1:] != u[:-1]).reshape(u.shape[0] - 1, -1), axis=1)
    return jnp.sum(jnp.any(jnp.stack([changed(u) for u in jax.tree.leaves(us)]), axis=0))


def check_sequence(owner: str, us: PyTree) -> None:
    check.numbers(owner, "us", us)
    if any(np.ndim(leaf) == 0 for leaf in jax.tree.leaves(us)):
        raise TypeError(f"{owner}: `us` holds a number; every leaf needs a leading axis of rounds.")


def weights(rounds: Rounds, dtype) -> Float[Array, " T"]:
    """The weight of every round; 1 if none is given."""
    if rounds.weight is not None:
        return jnp.asarray(rounds.weight, dtype)
    return jnp.ones(jax.tree.leaves(rounds)[0].shape[0], dtype)


def _losses(owner: str, play: Callable, apply: Model, u: PyTree, rounds: Rounds) -> Array:
    """The losses of a comparator; refuses one that does not have one number per round."""
    check.instance(owner, "rounds", rounds, Rounds)
    try:
        losses = play(u, rounds)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{owner}: {_why(apply, u, rounds)} ({str(error).splitlines()[0]})."
        ) from error
    if losses.ndim != 1:
        raise TypeError(f"{owner}: {_why(apply, u, rounds)}.")
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


def _curve(owner: str, run: Run, rounds: Rounds, losses: Array) -> Array:
    check.instance(owner, "run", run, Run)
    if isinstance(run.losses, NotKept | None):
        raise TypeError(f"{owner}: the run kept no losses; play it without `keep`.")
    return jnp.cumsum(weights(rounds, losses.dtype) * (run.losses - losses), axis=-1)


def _padded(owner: str, curve: Float[Array, "... T"]) -> Float[Array, "... T1"]:
    check.array(owner, "curve", curve, *range(1, 9))
    return jnp.concatenate([jnp.zeros_like(curve[..., :1]), curve], axis=-1)
