r"""Mix learners by an expert learner: a batch of one algorithm, or different algorithms.

Every learner $k$ plays $a_t^k$, learns from its own losses as if alone, and is an
expert with loss $f_t(a_t^k)$. The mixture plays $\sum_k p_{t,k} a_t^k$. For convex losses it pays
at most $\langle p_t, \ell_t \rangle$, so for every $k$ and $u$

$$\sum_t f_t(a_t) - f_t(u) \le R^{\mathrm{mixer}}(e_k) + R^k(u).$$

A grid of step sizes under a mixer is a learner that tunes itself.

van Erven, Koolen, MetaGrad: Multiple Learning Rates in Online Learning, 2016; Cesa-Bianchi, Lugosi,
Prediction, Learning, and Games, 2006.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Trace
from olx.losses.points import linear_feedback
from olx.needs import PARTS, within


@pytree
class MixHparams:
    experts: Learner | tuple[Learner, ...]  # a batch, or learners one by one
    mixer: Learner


class MixState(NamedTuple):
    experts: PyTree  # a leading axis of learners, or a tuple of their states
    mixer: PyTree


def mix(experts: Learner | tuple[Learner, ...], mixer: Learner) -> Learner:
    """Play the mean of what several learners play, weighed by `mixer` from equal weights.

    experts: a batch as `olx.batch` makes it, or a tuple of learners, which may be of different
        algorithms; their actions are real and of one shape, the losses convex in them.
    mixer: any learner whose action is a distribution; losses must be in the range it asks for.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=50, features=3)
    >>> grid = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.geomspace(1e-2, 1.0, 5))
    >>> game = olx.losses.squared, rounds, jnp.zeros(3)
    >>> tuned = olx.rollout(mix(grid, olx.hedge(1.0)), *game)
    >>> bool(tuned.total < 1.2 * olx.sweep(grid, *game).total.min())
    True
    """
    check.instance("mix", "mixer", mixer, Learner)
    each = experts if isinstance(experts, tuple) else (experts,)
    for expert in each:
        check.instance("mix", "experts", expert, Learner)
    if isinstance(experts, tuple):
        _check_members(experts)
        needs = tuple(
            need
            for index, expert in enumerate(experts)
            for need in within(expert, "experts", *PARTS, index=index)
        )
    else:
        _count(experts)
        needs = within(experts, "experts", *PARTS, stacked=True)
    proven = all(learner.bound_fn is not None for learner in (*each, mixer))
    hparams, proof = MixHparams(experts, mixer), bound if proven else None
    return Learner(hparams, init, predict, update, proof, needs=needs)


def init(hp: MixHparams, params: PyTree) -> MixState:
    if isinstance(hp.experts, tuple):
        states = tuple(expert.init(params) for expert in hp.experts)
    else:
        states = jax.vmap(lambda expert: expert.init(params))(hp.experts)
    count = _count(hp.experts)
    equal = jnp.full(count, 1 / count, jnp.result_type(*jax.tree.leaves(params)))
    return MixState(states, hp.mixer.init(equal))


def predict(hp: MixHparams, state: MixState, context: PyTree) -> PyTree:
    act = lambda expert, own: (own, expert.predict(own, context))
    _, actions = _each(act, hp.experts, state.experts)
    return mean(hp.mixer.predict(state.mixer), actions)


def update(hp: MixHparams, state: MixState, feedback: Feedback) -> MixState:
    def learn(expert: Learner, own: PyTree):
        seen = its_own(expert, own, feedback)
        return expert.update(own, seen), seen.value

    experts, losses = _each(learn, hp.experts, state.experts)
    seen = linear_feedback(hp.mixer.predict(state.mixer), losses, feedback.weight)
    return MixState(experts, hp.mixer.update(state.mixer, seen))


def bound(hp: MixHparams, trace: Trace, u: PyTree) -> Certificate:
    """The bound of the mixer to one of the learners and of that learner to `u`.

    After each round, of the learner for which the sum is least.
    """

    def of_one(expert: Learner, states: PyTree):
        seen = jax.vmap(lambda *one: its_own(expert, *one))(states, trace.feedback)
        return seen.value, expert.bound(Trace(states, seen), u)

    if isinstance(hp.experts, tuple):
        pairs = [of_one(*one) for one in zip(hp.experts, trace.state.experts, strict=True)]
        losses = jnp.stack([value for value, _ in pairs])
        proofs = stacked([proof for _, proof in pairs])
    else:
        losses, proofs = jax.vmap(of_one, in_axes=(0, 1))(hp.experts, trace.state.experts)
    p = jax.vmap(hp.mixer.predict)(trace.state.mixer)
    value, weight = trace.feedback.value, trace.feedback.weight
    told = jax.vmap(linear_feedback)(p, losses.T, jnp.broadcast_to(weight, value.shape))
    vertices = jnp.eye(losses.shape[0], dtype=losses.dtype)
    of_mixer = lambda vertex: hp.mixer.bound(Trace(trace.state.mixer, told), vertex)
    mixers = jax.vmap(of_mixer)(vertices)

    left = jnp.cumsum(weight * (value - losses), axis=1) + proofs.left
    right = mixers.right + proofs.right
    scale = mixers.scale + proofs.scale + jnp.cumsum(jnp.abs(weight * value))
    best = jnp.argmin(right, axis=0)
    of_best = lambda curves: jnp.take_along_axis(curves, best[None], axis=0)[0]
    theorem = f"{mixers.theorem}; {proofs.theorem}"
    proof = Certificate(of_best(left), of_best(right), of_best(scale), theorem=theorem)
    return proof.under(jax.tree.map(of_best, mixers.conditions | proofs.conditions))


def its_own(learner: Learner, state: PyTree, feedback: Feedback) -> Feedback:
    """The feedback as a learner sees it that played its own action in the same round."""
    action = learner.predict(state, feedback.context)
    value, grad = jax.value_and_grad(feedback.loss)(action)
    return feedback._replace(action=action, value=value, grad=grad)


def mean(p: Float[Array, " K"], actions: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), actions)


def stacked(proofs: list[Certificate]) -> Certificate:
    """Several certificates of one run as one, with a leading axis; a condition binds its own."""
    names = {name for proof in proofs for name in proof.conditions}
    met = lambda proof, name: proof.conditions.get(name, jnp.ones(proof.left.shape, bool))
    together = lambda field: jnp.stack([getattr(proof, field) for proof in proofs])
    return Certificate(
        together("left"),
        together("right"),
        together("scale"),
        theorem=" or ".join(dict.fromkeys(proof.theorem for proof in proofs)),
        conditions={name: jnp.stack([met(proof, name) for proof in proofs]) for name in names},
    )


def _each(function: Callable[..., Any], experts: Any, states: PyTree) -> tuple[PyTree, PyTree]:
    """From `(learner, its state)` to the next states and what else is stacked over learners."""
    if not isinstance(experts, tuple):
        return jax.vmap(function)(experts, states)
    pairs = [function(*one) for one in zip(experts, states, strict=True)]
    seen = [jax.tree.map(jnp.asarray, other) for _, other in pairs]
    for other in seen:
        check.same_shape("mix", "an action of `experts`", other, "that of the first", seen[0])
    return tuple(own for own, _ in pairs), jax.tree.map(lambda *rows: jnp.stack(rows), *seen)


def _check_members(experts: tuple[Learner, ...]) -> None:
    if not experts or any(expert.axes is not None for expert in experts):
        raise TypeError(
            "mix: `experts` must be a tuple of learners, at least one and none of them a batch, or "
            "one batch; mix the batch first, and its mixture with the others."
        )


def _count(experts: Learner | tuple[Learner, ...]) -> int:
    if isinstance(experts, tuple):
        return len(experts)
    shapes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(experts)}
    if len(shapes) != 1 or shapes == {()}:
        raise TypeError(
            "mix: `experts` must be a batch, every number with a leading axis of learners, as from "
            f"`olx.batch`; its leaves start with axes {sorted(shapes)}."
        )
    return shapes.pop()[0]
