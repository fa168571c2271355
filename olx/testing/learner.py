"""The conformance kit for learners: what every learner must do, checked on one of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.protocol import feedback_of
from olx.engine.rollout import rollout
from olx.engine.run import start
from olx.engine.sweep import sweep
from olx.testing.forms import check_dictionary, check_lowering, check_separable
from olx.testing.report import close, fail, tolerance

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
    play = jax.jit(lambda learner, rounds: rollout(learner, loss, rounds, params))
    check_repeats(learner, rounds, params)
    done = play(learner, rounds)
    if not np.all(np.isfinite(done.losses)):
        at = int(np.argmin(np.isfinite(done.losses)))
        fail(f"losses are not finite from round {at} on; choose numbers that do not diverge")
    check_jit(learner, loss, rounds, params, done)
    check_batch(learner, loss, rounds, params, play)
    check_one_program(learner, rounds, play)
    check_gradient(learner, rounds, play)
    check_resume(learner, loss, rounds, params)
    check_weight(learner, loss, rounds, params)
    if trees:
        check_dictionary(learner, loss, rounds, params, done)
    check_separable(learner, loss, rounds, params)
    check_lowering(learner, rounds, play, platforms)


def check_repeats(learner: Learner, rounds: Rounds, params: PyTree) -> None:
    """Predicting twice from one state gives one action."""
    context = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    state = start(learner, params)
    again = lambda: jax.jit(lambda state: learner.predict(state, context))(state)
    close("predicting twice differs", again(), again())


def check_jit(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, done: Run) -> None:
    """Played step by step without jit, a few rounds give what the compiled run gave."""
    few = jax.tree.map(lambda leaf: leaf[:2], rounds)
    with jax.disable_jit():
        slow = rollout(learner, loss, few, params)
    close("jit changes the losses", slow.losses, done.losses[:2], rtol=tolerance(done))


def check_batch(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, play) -> None:
    """A sweep of learners with other numbers equals playing them one by one."""
    if not jax.tree.leaves(learner):
        return
    others = [_with_numbers(learner, factor) for factor in (1.0, 0.9, 0.7)]
    together = sweep(_stack(others), loss, rounds, params)
    apart = np.stack([play(other, rounds).losses for other in others])
    close("a batch is not a loop", together.losses, apart, rtol=tolerance(together))


def check_one_program(learner: Learner, rounds: Rounds, play: Any) -> None:
    """Another number is not another program."""
    before = play._cache_size()
    play(_with_numbers(learner, 0.8), rounds)
    if play._cache_size() > before:
        fail("a new number is a new program: keep numbers in hparams as leaves, not as static")


def check_gradient(learner: Learner, rounds: Rounds, play: Any) -> None:
    """Total loss is differentiable in every real number of the learner."""
    total = lambda learner: jnp.sum(play(learner, rounds).losses)
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    if not any(map(real, jax.tree.leaves(learner))):
        return
    slope = jax.grad(total, allow_int=True)(learner)
    for (path, number), d in zip(
        jax.tree_util.tree_leaves_with_path(learner), jax.tree.leaves(slope), strict=True
    ):
        if real(number) and not np.all(np.isfinite(d)):
            fail(f"the gradient of total loss is not finite in {jax.tree_util.keystr(path)}")
    if play(learner, rounds).losses.dtype != jnp.float64:
        return  # differences of float32 totals are mostly rounding
    step = 1e-6
    ahead, behind = _with_numbers(learner, 1 + step), _with_numbers(learner, 1 - step)
    difference = (total(ahead) - total(behind)) / (2 * step)
    along = sum(
        jnp.sum(jnp.asarray(number) * d)
        for number, d in zip(jax.tree.leaves(learner), jax.tree.leaves(slope), strict=True)
        if real(number)
    )
    close("the gradient of total loss disagrees with finite differences", along, difference, 1e-5)


def check_resume(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Stopping after a part and going on from its state changes no bit."""
    play = jax.jit(lambda state, rounds: rollout(learner, loss, rounds, params, state=state))
    half = jax.tree.leaves(rounds)[0].shape[0] // 2
    begin = start(learner, params)
    first = play(begin, jax.tree.map(lambda leaf: leaf[:half], rounds))
    second = play(first.state, jax.tree.map(lambda leaf: leaf[half:], rounds))
    whole = play(begin, rounds)
    joined = np.concatenate([first.losses, second.losses])
    close("resuming changes the losses", joined, whole.losses)
    close("resuming changes the state", second.state, whole.state)


def check_weight(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """A round of weight zero changes nothing, one of weight one is an ordinary round."""
    one = jax.tree.map(lambda leaf: leaf[0], rounds)

    @jax.jit
    def after(state, weight):
        action = learner.predict(state, one.context)
        feedback = feedback_of(loss, one.context, action, one.outcome, weight)
        return learner.update(state, feedback)

    state = start(learner, params)
    dtype = jnp.result_type(*[x for x in jax.tree.leaves(one) if x.dtype.kind == "f"])
    close("a round of weight zero changes the state", after(state, jnp.zeros((), dtype)), state)
    plain, weighted = after(state, 1.0), after(state, jnp.ones((), dtype))
    close("a round of weight one is not an ordinary round", weighted, plain, rtol=1e-6)


def _with_numbers(learner: Learner, factor: float) -> Learner:
    """The same learner with every real number times `factor`."""
    scale = lambda leaf: (
        leaf * factor if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf
    )
    return jax.tree.map(scale, learner)


def _stack(learners: list[Learner]) -> Learner:
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *learners)
