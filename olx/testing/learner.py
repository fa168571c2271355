"""The conformance kit for learners: checks of what every learner must do."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.rollout import rollout
from olx.testing.drivers import check_drivers
from olx.testing.implementations import check_dictionary, check_lowering, check_widths
from olx.testing.report import (
    after,
    before_update,
    close,
    fail,
    is_real,
    numbers,
    study,
    tolerance,
    weighed,
    with_numbers,
)
from olx.testing.theorems import check_theorems
from olx.testing.ties import tied_rounds

PLATFORMS = ("cpu", "cuda", "tpu")


def check_learner(
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    comparators: tuple | None = None,
    trees: bool = True,
    platforms: tuple[str, ...] = PLATFORMS,
) -> None:
    """Check `learner` on a short stream; an AssertionError names the property that it breaks.

    - The state keeps its structure, and `predict` gives the same result twice.
    - jit changes nothing, and a new number does not compile a new program.
    - `run`, `sweep` and `step` give the losses of `rollout`, also on a stream with ties and unseen
      features that is made of `rounds`.
    - The gradient of the total loss is finite; in float64 it agrees with finite differences.
    - A run that stops and resumes has the same bits. A round of weight zero changes nothing.
    - A dictionary of parameters gives the same losses as one vector.
    - Its `facts` are true: sweeps of 1 to 65 configurations and sparse rows equal `rollout`, also
      in float32. A point learner is put into `olx.linear` for this. If it says `keeps_decision`,
      its decisions with zero gradient stay.
    - Its theorems hold after every round.
    - The program can be lowered for every platform; the platforms need not be present.

    comparators: points of the domain to check the theorems against; `params` and 0 if None.
    trees: False for a learner whose potential or model takes one array and no dictionary.

    Use float64 and a few dozen rounds that avoid the kinks of the loss.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=20, features=4)
    >>> olx.testing.check_learner(
    ...     olx.linear(olx.ogd(0.1)), olx.losses.squared, rounds, jnp.zeros(4)
    ... )
    """
    look = jax.jit(lambda learner, rounds: study(learner, loss, rounds, params))
    resume = jax.jit(
        lambda learner, rounds, state: rollout(
            learner, loss, rounds, params, state=state, record=before_update
        )
    )
    play = lambda learner, rounds: look(learner, rounds)[0]
    done, slope, actions = look(learner, rounds)
    close("predicting twice differs", *actions)
    if not np.all(np.isfinite(done.losses)):
        at = int(np.argmin(np.isfinite(done.losses)))
        fail(f"losses are not finite from round {at} on; choose numbers that do not diverge")
    check_resume(learner, rounds, done, resume)
    check_weight(learner, rounds, play(learner, rounds._replace(weight=None)), resume)
    check_drivers(learner, loss, rounds, params, play, "this stream")
    tied = tied_rounds(learner, loss, rounds, params)
    check_jit(learner, loss, tied, params, play(learner, tied))
    check_drivers(learner, loss, tied, params, play, "a stream with ties and unseen features")
    check_one_program(learner, rounds, look)
    check_gradient(learner, rounds, done, slope, play)
    if trees:
        check_dictionary(learner, loss, rounds, params, done)
    check_widths(learner, loss, rounds, params)
    check_theorems(learner, loss, rounds, params, comparators)
    check_lowering(learner, rounds, look, platforms)


def check_jit(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, done: Run) -> None:
    """Without jit, the first state and two rounds in the middle equal those of the run.

    rounds: those of `done`; a tie in the middle is one in each operation, and in all as a program.
    """
    at = len(done.losses) // 2
    two = jax.tree.map(lambda leaf: leaf[at : at + 2], rounds)
    with jax.disable_jit():
        first = learner.init(params)
        slow = rollout(learner, loss, two, params, state=after(done, at))
    rtol = tolerance(done)
    close("jit changes the first state", first, after(done, 0), rtol)
    close("jit changes the losses", slow.losses, done.losses[at : at + 2], rtol)
    close("jit changes the state", slow.state, after(done, at + 2), rtol)


def check_resume(learner: Learner, rounds: Rounds, done: Run, resume: Callable) -> None:
    """A run that stops half-way and resumes from its state has the same bits."""
    length, half = len(done.losses), len(done.losses) // 2
    rounds = weighed(rounds, 1 if rounds.weight is None else rounds.weight)
    whole = resume(learner, rounds, after(done, 0))
    rest_first = jax.tree.map(lambda leaf: np.roll(leaf, -half, axis=0), rounds)
    rest = resume(learner, rest_first, after(whole, half))
    close("resuming changes the losses", rest.losses[: length - half], whole.losses[half:])
    close("resuming changes the state", after(rest, length - half), whole.state)


def check_weight(learner: Learner, rounds: Rounds, plain: Run, resume: Callable) -> None:
    """A round of weight zero changes nothing; a round of weight one is like one without weight.

    plain: the run of the same rounds without weights.
    """
    begin, odd = after(plain, 0), np.arange(len(plain.losses)) % 2
    idle = resume(learner, weighed(rounds, odd), begin)
    states = jax.tree.map(
        lambda before, last: np.concatenate([before, last[None]]),
        numbers(idle.trace),
        numbers(idle.state),
    )
    idle_from = jax.tree.map(lambda leaf: leaf[:-1:2], states)
    idle_to = jax.tree.map(lambda leaf: leaf[1::2], states)
    close("a round of weight zero changes the state", idle_to, idle_from)
    what = "a round of weight 1 differs from a round without weight"
    weighted = resume(learner, weighed(rounds, 1), begin)
    close(what, after(weighted, 1), after(plain, 1), rtol=1e-6)
    close(what, weighted.losses, plain.losses, rtol=tolerance(plain))


def check_one_program(learner: Learner, rounds: Rounds, look: Any) -> None:
    """A new number does not compile a new program."""
    before = look._cache_size()
    look(with_numbers(learner, 0.8), rounds)
    if look._cache_size() > before:
        fail("a new number is a new program: keep numbers in hparams as leaves, not as static")


def check_gradient(
    learner: Learner, rounds: Rounds, done: Run, slope: list, play: Callable
) -> None:
    """The total loss is differentiable in every real number of the learner.

    slope: the gradient of the total loss with respect to the real leaves, in order.
    """
    real = [pair for pair in jax.tree_util.tree_leaves_with_path(learner) if is_real(pair[1])]
    for (path, _), d in zip(real, slope, strict=True):
        if not np.all(np.isfinite(d)):
            fail(f"the gradient of total loss is not finite in {jax.tree_util.keystr(path)}")
    if not real or done.losses.dtype != jnp.float64:
        return  # finite differences in float32 are mostly rounding
    step = 1e-6
    total = lambda factor: np.sum(play(with_numbers(learner, factor), rounds).losses)
    difference = (total(1 + step) - total(1 - step)) / (2 * step)
    along = sum(np.sum(np.asarray(number) * d) for (_, number), d in zip(real, slope, strict=True))
    close("the gradient of total loss disagrees with finite differences", along, difference, 1e-5)
