"""The conformance kit for learners: what every learner must do, checked on one of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.rollout import rollout
from olx.engine.sweep import sweep
from olx.testing.forms import check_dictionary, check_lowering, check_separable
from olx.testing.report import close, fail, numbers, tolerance

PLATFORMS = ("cpu", "cuda", "tpu")


def check_learner(
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    trees: bool = True,
    platforms: tuple[str, ...] = PLATFORMS,
) -> None:
    """Raise an AssertionError that names the property which `learner` breaks on a short stream.

    The state keeps its structure; predicting twice gives the same; jit changes nothing; a batch is
    a loop; another number is not another program; total loss is differentiable in every real
    number, and in float64 agrees with finite differences; stopping and going on changes no bit; a
    round of weight zero changes nothing; dictionaries of parameters do as well as one vector; a
    learner that says it is separable plays sparse rows; and the program lowers for every platform,
    none of which needs to be there.

    trees: False for a learner whose potential or model takes one array and no dictionary.

    Use float64 and a stream that avoids the kinks of the loss, a few dozen rounds long.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=20, features=4)
    >>> olx.testing.check_learner(
    ...     olx.linear(olx.ogd(0.1)), olx.losses.squared, rounds, jnp.zeros(4)
    ... )
    """
    study = jax.jit(lambda learner, rounds: _study(learner, loss, rounds, params))
    resume = jax.jit(
        lambda learner, rounds, state: rollout(
            learner, loss, rounds, params, state=state, record=_state
        )
    )
    play = lambda learner, rounds: study(learner, rounds)[0]
    done, slope, actions = study(learner, rounds)
    close("predicting twice differs", *actions)
    if not np.all(np.isfinite(done.losses)):
        at = int(np.argmin(np.isfinite(done.losses)))
        fail(f"losses are not finite from round {at} on; choose numbers that do not diverge")
    check_jit(learner, loss, rounds, params, done)
    check_resume(learner, rounds, done, resume)
    check_weight(learner, rounds, play(learner, rounds._replace(weight=None)), resume)
    check_batch(learner, loss, rounds, params, play)
    check_one_program(learner, rounds, study)
    check_gradient(learner, rounds, done, slope, play)
    if trees:
        check_dictionary(learner, loss, rounds, params, done)
    check_separable(learner, loss, rounds, params, play)
    check_lowering(learner, rounds, study, platforms)


def check_jit(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, done: Run) -> None:
    """Played without jit, the start and a round of the middle are what they were in the run."""
    at = len(done.losses) // 2
    one = jax.tree.map(lambda leaf: leaf[at : at + 1], rounds)
    with jax.disable_jit():
        first = learner.init(params)
        slow = rollout(learner, loss, one, params, state=_after(done, at))
    rtol = tolerance(done)
    close("jit changes the first state", first, _after(done, 0), rtol)
    close("jit changes the losses", slow.losses, done.losses[at : at + 1], rtol)
    close("jit changes the state", slow.state, _after(done, at + 1), rtol)


def check_resume(learner: Learner, rounds: Rounds, done: Run, resume: Callable) -> None:
    """Stopping after a part and going on from its state changes no bit."""
    length, half = len(done.losses), len(done.losses) // 2
    rounds = _weighed(rounds, 1 if rounds.weight is None else rounds.weight)
    whole = resume(learner, rounds, _after(done, 0))
    rest_first = jax.tree.map(lambda leaf: np.roll(leaf, -half, axis=0), rounds)
    rest = resume(learner, rest_first, _after(whole, half))
    close("resuming changes the losses", rest.losses[: length - half], whole.losses[half:])
    close("resuming changes the state", _after(rest, length - half), whole.state)


def check_weight(learner: Learner, rounds: Rounds, plain: Run, resume: Callable) -> None:
    """A round of weight zero changes nothing, one of weight one is an ordinary round.

    plain: the run of the same rounds without weights.
    """
    begin, odd = _after(plain, 0), np.arange(len(plain.losses)) % 2
    idle = resume(learner, _weighed(rounds, odd), begin)
    states = jax.tree.map(
        lambda before, last: np.concatenate([before, last[None]]),
        numbers(idle.trace),
        numbers(idle.state),
    )
    before = jax.tree.map(lambda leaf: leaf[:-1:2], states)
    after = jax.tree.map(lambda leaf: leaf[1::2], states)
    close("a round of weight zero changes the state", after, before)
    what = "a round of weight one is not an ordinary round"
    weighted = resume(learner, _weighed(rounds, 1), begin)
    close(what, _after(weighted, 1), _after(plain, 1), rtol=1e-6)
    close(what, weighted.losses, plain.losses, rtol=tolerance(plain))


def check_batch(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, play: Callable
) -> None:
    """A sweep of learners with other numbers equals playing them one by one."""
    if not jax.tree.leaves(learner):
        return
    others = [_with_numbers(learner, factor) for factor in (1.0, 0.9, 0.7)]
    together = sweep(_stack(others), loss, rounds, params)
    apart = np.stack([play(other, rounds).losses for other in others])
    close("a batch is not a loop", together.losses, apart, rtol=tolerance(together))


def check_one_program(learner: Learner, rounds: Rounds, study: Any) -> None:
    """Another number is not another program."""
    before = study._cache_size()
    study(_with_numbers(learner, 0.8), rounds)
    if study._cache_size() > before:
        fail("a new number is a new program: keep numbers in hparams as leaves, not as static")


def check_gradient(
    learner: Learner, rounds: Rounds, done: Run, slope: list, play: Callable
) -> None:
    """Total loss is differentiable in every real number of the learner.

    slope: the gradient of total loss in the real leaves, in order.
    """
    real = [pair for pair in jax.tree_util.tree_leaves_with_path(learner) if _is_real(pair[1])]
    for (path, _), d in zip(real, slope, strict=True):
        if not np.all(np.isfinite(d)):
            fail(f"the gradient of total loss is not finite in {jax.tree_util.keystr(path)}")
    if not real or done.losses.dtype != jnp.float64:
        return  # differences of float32 totals are mostly rounding
    step = 1e-6
    total = lambda factor: np.sum(play(_with_numbers(learner, factor), rounds).losses)
    difference = (total(1 + step) - total(1 - step)) / (2 * step)
    along = sum(np.sum(np.asarray(number) * d) for (_, number), d in zip(real, slope, strict=True))
    close("the gradient of total loss disagrees with finite differences", along, difference, 1e-5)


def _study(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree
) -> tuple[Run, list, list[PyTree]]:
    """The run with its states, the slope of its total, and the first action predicted twice."""
    leaves, structure = jax.tree.flatten(learner)

    def total(real: list) -> tuple[jax.Array, Run]:
        mine = iter(real)
        both = [next(mine) if _is_real(leaf) else leaf for leaf in leaves]
        run = rollout(jax.tree.unflatten(structure, both), loss, rounds, params, record=_state)
        return jnp.sum(run.losses), run

    slope, run = jax.grad(total, has_aux=True)([leaf for leaf in leaves if _is_real(leaf)])
    state = learner.init(params)
    context = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    return run, slope, [learner.predict(state, context) for _ in range(2)]


def _state(state: PyTree, feedback: Any) -> PyTree:
    return state


def _after(run: Run, count: int) -> PyTree:
    """The state of a run after so many rounds."""
    if count == len(run.losses):
        return run.state
    return jax.tree.map(lambda leaf: _row(leaf, count), run.trace)


def _row(leaf: jax.Array, at: int) -> Any:
    """NumPy knows neither keys nor weak types."""
    plain = not getattr(leaf, "weak_type", True)  # a key has no such thing
    return np.asarray(leaf)[at] if plain else leaf[at]


def _weighed(rounds: Rounds, weight: Any) -> Rounds:
    """The rounds with one weight for all, or one for each."""
    leaves = jax.tree.leaves(rounds)
    dtype = jnp.result_type(*[leaf for leaf in leaves if leaf.dtype.kind == "f"])
    return rounds._replace(weight=np.full(len(leaves[0]), weight, dtype))


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _with_numbers(learner: Learner, factor: float) -> Learner:
    """The same learner with every real number times `factor`."""
    return jax.tree.map(lambda leaf: leaf * factor if _is_real(leaf) else leaf, learner)


def _stack(learners: list[Learner]) -> Learner:
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *learners)
