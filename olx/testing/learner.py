"""The conformance kit for learners: what every learner must do.

All drivers play it alike, its facts are true, and its theorems hold on the stream of the kit.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx.certificate import Certificate, Certificates
from olx.core import Learner, Loss, Rounds, Run
from olx.engine.arguments import check_game
from olx.engine.certify import certify
from olx.engine.game import game_of
from olx.engine.implementations import why_not
from olx.engine.implementations.dense import DENSE
from olx.engine.implementations.host import HOST
from olx.engine.numbers import numbers_of
from olx.engine.rollout import rollout
from olx.engine.round import Recorder
from olx.engine.run import run, sweep
from olx.engine.serve import step
from olx.record import trace
from olx.testing.implementations import check_dictionary, check_lowering, check_widths
from olx.testing.report import (
    after,
    before_update,
    close,
    fail,
    is_real,
    movable,
    numbers,
    study,
    tolerance,
    weighed,
    with_numbers,
)
from olx.testing.scale import check_scale
from olx.testing.ties import tied_rounds

FACTORS = 1.0, 0.9, 0.7  # of the numbers of the learners in a sweep


def check_drivers(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, play: Callable, what: str
) -> None:
    """`run`, `sweep` and `step` give the losses of `rollout`.

    play: (learner, rounds) -> the run by `rollout`, with its states.
    what: the stream, in words.
    """
    wanted = play(learner, rounds)
    if not np.all(np.isfinite(wanted.losses)):
        at = int(np.argmin(np.isfinite(wanted.losses)))
        fail(f"on {what} losses are not finite from round {at} on; choose numbers that are legal")
    rtol = tolerance(wanted)
    game = game_of("run", numbers_of(learner, loss, check_game), rounds, params, Recorder())
    for name in (one.name for one in (HOST, DENSE) if not why_not(one, game)):
        seen = run(learner, loss, rounds, params, implementation=name).losses
        close(f"on {what} `run` differs from `rollout` ({name})", seen, wanted.losses, rtol)
    seen = _losses_of_steps(learner, loss, rounds, wanted)
    close(f"on {what} `step` differs from `rollout`", seen, wanted.losses, rtol)
    if not jax.tree.leaves(learner):
        return
    moves = movable(learner, params)
    others = [with_numbers(learner, factor, moves) for factor in FACTORS]
    single = np.stack([play(other, rounds).losses for other in others])
    if not np.all(np.isfinite(single)):
        fail(
            f"on {what} losses are not finite if all numbers are smaller by a third; choose other "
            "numbers"
        )
    stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])
    seen = sweep(jax.tree.map(stack, *others), loss, rounds, params).losses
    close(f"on {what} a sweep differs from single runs", seen, single, rtol)


def _losses_of_steps(learner: Learner, loss: Loss, rounds: Rounds, wanted: Run) -> np.ndarray:
    """The losses of the same rounds, played one by one."""
    state, losses = after(wanted, 0), []
    for t in range(len(wanted.losses)):
        one = jax.tree.map(lambda leaf, t=t: np.asarray(leaf)[t], rounds)
        weight = 1.0 if one.weight is None else one.weight
        state, _, paid = step(learner, loss, state, one.context, one.outcome, weight)
        losses.append(paid)
    return np.stack(losses)


def check_theorems(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, comparators: tuple | None
) -> None:
    """Every theorem of the learner holds after every round, and ignores rounds of weight zero.

    comparators: points of the domain; `params` and 0 if None.
    """
    if not learner.theorems:
        return
    if comparators is None:
        comparators = (params, jax.tree.map(jnp.zeros_like, params))
    points = jax.tree.map(lambda *leaves: np.stack(leaves), *comparators)

    @jax.jit
    def judge(learner: Learner, rounds: Rounds) -> tuple[Certificates, list[Array]]:
        run = rollout(learner, loss, rounds, params, record=trace)
        proofs = jax.vmap(lambda u: certify(learner, run, u))(points)
        return proofs, [each.fails for each in proofs]

    judged = numbers(judge(learner, _with_idle_rounds(rounds)))
    for proofs, fails in zip(*judged, strict=True):
        name = proofs.name
        each = [jax.tree.map(lambda leaf, i=i: leaf[i], proofs) for i in range(len(comparators))]
        for proof, failed in zip(each, fails, strict=True):
            _check(name, proof, failed)
        if not any(np.isfinite(proof.right[-1]) for proof in each):
            fail(
                f"the theorem `{name}` says nothing about this stream and these `comparators`, so "
                f"it is not tested: {each[0]}"
            )


def _check(name: str, proof: Certificate, fails: np.ndarray) -> None:
    if np.any(fails):
        at = int(np.argmax(fails))
        fail(
            f"the theorem `{name}` is violated after round {at // 2 + 1}: {proof.left[at]} <= "
            f"{proof.right[at]} ({proof.theorem})"
        )
    sides = proof.left, proof.right, proof.published, proof.conditions
    during = jax.tree.map(lambda side: side[2::2], sides)
    before = jax.tree.map(lambda side: side[1:-1:2], sides)
    close(f"a round of weight zero changes the theorem `{name}`", during, before)


def _with_idle_rounds(rounds: Rounds) -> Rounds:
    """The rounds with one more round, of weight zero, before each of them."""
    weight = rounds.weight
    rounds = weighed(rounds, 1 if weight is None else weight)
    idle = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), weighed(rounds, 0))
    merge = lambda a, b: np.stack([a, b], axis=1).reshape(-1, *np.shape(a)[1:])
    return jax.tree.map(merge, idle, rounds)


PLATFORMS = ("cpu", "cuda", "tpu")


def check_learner(
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    comparators: tuple | None = None,
    trees: bool = True,
    facts: bool = True,
    without_jit: bool = True,
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
      its decisions with zero gradient stay. If it says `scale_free`, losses times 1e-6 and 1e6
      give the same actions.
    - Its theorems hold after every round.
    - The program can be lowered for every platform; the platforms need not be present.

    comparators: points of the domain to check the theorems against; `params` and 0 if None.
    trees: False for a learner whose potential or model takes one array and no dictionary.
    facts, without_jit: False to leave this part out, which takes a fifth of the time each, for a
        learner that is like another one with other numbers or another mirror map.

    Use float64 and a few dozen rounds that avoid the kinks of the loss.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=20, features=4)
    >>> olx.testing.check_learner(
    ...     olx.linear(olx.ogd(0.1)), olx.losses.squared, rounds, jnp.zeros(4)
    ... )
    """
    traces: list[None] = []

    @jax.jit
    def look(learner: Learner, rounds: Rounds) -> tuple[Run, list, list[PyTree]]:
        traces.append(None)
        return study(learner, loss, rounds, params)

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
    if without_jit:
        check_jit(learner, loss, tied, params, play(learner, tied))
    check_drivers(learner, loss, tied, params, play, "a stream with ties and unseen features")
    check_one_program(learner, rounds, look, traces)
    check_gradient(learner, rounds, done, slope, play)
    if trees:
        check_dictionary(learner, loss, rounds, params, done)
    if facts:
        check_widths(learner, loss, rounds, params)
        check_scale(learner, loss, rounds, params)
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


def check_one_program(learner: Learner, rounds: Rounds, look: Callable, traces: list[None]) -> None:
    """A new number does not compile a new program.

    traces: gets an entry whenever `look` is traced.
    """
    before = len(traces)
    look(with_numbers(learner, 0.8), rounds)
    if len(traces) > before:
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
