"""`run` and `sweep`: the same game as `rollout`, compiled once, for one learner or for many."""

import dataclasses
from collections.abc import Iterable

from jaxtyping import PyTree

from olx._refusal import public
from olx.core import Batch, Learner, Loss, Rounds, Run
from olx.engine.arguments import check_batch, check_game
from olx.engine.checkpoint import Checkpoint
from olx.engine.execute import Options, execute
from olx.engine.game import game_of
from olx.engine.numbers import numbers_of
from olx.engine.round import Measure, Record, recorder_of
from olx.keep import Keep
from olx.needs import refuse_breach


@public
def run(
    learner: Learner,
    loss: Loss,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    *,
    record: Record | None = None,
    measure: Measure | None = None,
    keep: Keep | None = None,
    state: PyTree = None,
    progress: bool | None = None,
    checkpoint: Checkpoint | None = None,
    explain: bool = False,
    implementation: str | None = None,
) -> Run:
    """Play `learner` on a stream through the engine: fast, with the same numbers as `rollout`.

    rounds: arrays or memory maps in a `Rounds`, or any iterable of `Rounds`. An iterable needs
        memory for one chunk and for the rounds that are kept.
    record: (state before the update, feedback) -> what to keep of each round; a named function.
    keep: which rounds to keep, a rule of `olx.keep`; all rounds if None. With a rule the run has a
        `curve` of the cumulative loss in place of the losses.
    measure: feedback -> numbers to sum beside the loss; a named function. The sums are in the
        curve, so it needs `keep`.
    state: continue from the `state` of an earlier run.
    progress: whether to show a progress bar; None shows it on a terminal, and elsewhere a
        line each minute.
    checkpoint: where to save and resume from, made by `olx.checkpoint`.
    explain: print how the program was compiled, and why; and for each implementation whether it
        is used, or why not.
    implementation: the name of one implementation, as `explain` prints it; None takes the first
        that fits. Another one gives the same numbers up to the order of sums.

    Call it at top level: inside `jit`, `vmap` or `grad` use `rollout`. A function of yours may read
    constants besides its arguments, and small arrays of NumPy; a change of them is seen. What it
    imports inside, a large array or a random state is read once, as in `jax.jit`.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=3000, features=5)
    >>> done = olx.run(olx.linear(olx.ogd(0.01)), olx.losses.squared, rounds, jnp.zeros(5),
    ...                keep=olx.keep.every(1000))
    >>> done.curve.at.tolist()
    [1000, 2000, 3000]
    """
    numbers = numbers_of(learner, loss, check_game)
    recorder = recorder_of(record, measure, keep)
    options = Options(keep, progress, checkpoint, explain, implementation=implementation)
    done = execute(game_of("run", numbers, rounds, params, recorder, state), options)
    refuse_breach(done.state)
    return done


@public
def sweep(
    learners: Batch | Learner,
    loss: Loss,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    *,
    record: Record | None = None,
    measure: Measure | None = None,
    keep: Keep | None = None,
    state: PyTree = None,
    progress: bool | None = None,
    checkpoint: Checkpoint | None = None,
    explain: bool = False,
    threads: int | None = None,
    implementation: str | None = None,
) -> Run:
    """Play every learner of a batch on the same stream; the leaves of the run get a leading axis.

    The numbers are those of `jax.vmap` of `rollout` over the learners. The arguments are those of
    `run`. The configurations are spread over all devices, and on one CPU over all its cores; after
    `jax.distributed.initialize`, over all processes, which all return the same result.
    `axes` of the result holds the values of each configuration, by name. With
    `keep=olx.keep.totals` thousands of configurations over millions of rounds fit in memory.

    learners: a batch, or a learner whose leaves have a leading axis.
    state: continue from the `state` of an earlier sweep; learner i goes on from entry i of it.
    threads: at most how many threads play; None is the number in the environment variable
        OLX_THREADS, else one for each core. The numbers do not depend on it, to the last bit.

    A configuration that diverges has non-finite losses at its own index; the others are unchanged.

    >>> import jax.numpy as jnp, olx
    >>> learners = olx.batch(olx.hedge, eta=jnp.array([0.1, 1.0, 10.0]))
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> runs = olx.sweep(learners, olx.losses.linear_loss, rounds, jnp.array([0.5, 0.5]))
    >>> runs.total.round(2).tolist(), runs.axes["eta"].tolist()
    ([1.85, 0.94, 0.5], [0.1, 1.0, 10.0])
    """
    axes = None
    if isinstance(learners, Batch):
        learners, axes = learners.learners, learners.axes
    numbers = numbers_of(learners, loss, check_batch, stacked=True)
    recorder = recorder_of(record, measure, keep)
    options = Options(keep, progress, checkpoint, explain, threads, implementation)
    done = execute(game_of("sweep", numbers, rounds, params, recorder, state), options)
    return dataclasses.replace(done, axes=axes)
