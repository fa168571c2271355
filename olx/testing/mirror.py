"""The conformance kits for mirror maps, for regularizers that change with time, and for losses.

A mirror map is checked for the facts of convex duality, a loss of a score for its value and its
slope.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._compiled import compiled
from olx._refusal import RefusedType, public
from olx.core import Loss, Process, Rounds
from olx.engine.rollout import rollout
from olx.frameworks.ftrl import ftrl
from olx.frameworks.lift import linear
from olx.losses.score import ScoreLoss
from olx.mirrors.base import MirrorMap
from olx.testing.report import close, fail


class Geometry(NamedTuple):
    """Both sides of Hoelder's inequality, and of strong convexity from a decision to another."""

    pair: Float[Array, " n"]  # |<decision, dual>|
    bound: Float[Array, " n"]  # the product of their norms
    bregman: Float[Array, " n"]  # the divergence of two decisions
    least: Float[Array, " n"]  # its lower bound by the modulus


class Seen(NamedTuple):
    """The values of a map at n duals near a point with d coordinates, and at their decisions."""

    ws: PyTree  # [n, ...]
    inside: Bool[Array, " n"]
    potentials: Float[Array, " n"]  # of the decisions
    conjugates: Float[Array, " n"]
    inner: Float[Array, "n n"]  # decisions by duals
    potentials_between: Float[Array, " n"]  # halfway from a decision to the one before
    conjugates_between: Float[Array, " n"]
    slope: Float[Array, "d d"]
    differences: Float[Array, "d d"]
    back: PyTree  # decisions of the duals of decisions
    held: PyTree  # decisions of retracted duals; None without a retraction
    later: tuple[PyTree, PyTree] | None  # decisions of duals, centred or not, after one more step
    geometry: Geometry | None


@public
def check_mirror(mirror: MirrorMap, theta: PyTree, *, key: jax.Array | None = None) -> None:
    r"""Check `mirror` near `theta`; an AssertionError names the fact of duality that it breaks.

    All values are finite; decisions lie in the domain; $\psi(w) + \psi^*(\theta) \ge
    \langle\theta, w\rangle$, with equality at the decision of $\theta$; both functions are convex;
    the derivative of the decision is symmetric and positive semidefinite, and agrees with finite
    differences; `to_primal` of `to_dual` of a decision is that decision; the stated norm and its
    dual satisfy Hoelder's inequality; $\psi$ is as strongly convex, and as separable, as stated.

    >>> import jax.numpy as jnp, olx
    >>> olx.testing.check_mirror(olx.mirrors.negative_entropy(), jnp.array([0.5, -1.0, 2.0]))
    """
    check.instance("mirror", mirror, MirrorMap)
    theta = check.finite("theta", theta, each=True)
    key = jax.random.key(0) if key is None else key
    check.key(key)
    seen = jax.tree.map(np.asarray, _look(mirror, theta, key))
    single = jnp.result_type(*jax.tree.leaves(theta)) != jnp.float64
    loose = 2e-4 if single else 1e-9
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(seen.ws)):
        fail("a decision is not finite")
    for name, values in (("potential", seen.potentials), ("conjugate", seen.conjugates)):
        if not np.all(np.isfinite(values)):
            fail(f"the {name} is not finite")
    if not np.all(seen.inside):
        fail("a decision lies outside the domain")
    check_duality(seen, loose)
    check_convexity("potential", seen.potentials, seen.potentials_between, loose)
    check_convexity("conjugate", seen.conjugates, seen.conjugates_between, loose)
    check_derivative(seen, mirror.separable, single)
    close("the dual of a decision does not lead back to it", seen.back, seen.ws, 10 * loose)
    if seen.held is not None:
        close("the retraction changes the decision", seen.held, seen.ws, 10 * loose)
    if seen.later is not None:
        centred, plain = seen.later
        close("the centering changes a later decision", centred, plain, 10 * loose)
    if seen.geometry is not None:
        check_geometry(seen.geometry, loose)


def check_duality(seen: Seen, loose: float) -> None:
    """The Fenchel-Young inequality holds, with equality at the decision."""
    gaps = seen.potentials[:, None] + seen.conjugates - seen.inner
    size = 1 + np.max(np.abs(seen.conjugates))
    if np.min(gaps) < -loose * size:
        fail(f"the Fenchel-Young gap is negative: {np.min(gaps)}")
    if np.max(np.abs(np.diagonal(gaps))) > loose * size:
        fail(
            "the decision is not where the conjugate is attained: gap "
            f"{np.max(np.abs(np.diagonal(gaps)))}"
        )


def check_convexity(name: str, ends: np.ndarray, between: np.ndarray, loose: float) -> None:
    """A function lies below its chords."""
    rise = between - (ends + np.roll(ends, 1)) / 2
    if np.max(rise) > loose * (1 + np.max(np.abs(ends))):
        fail(f"the {name} is not convex: {np.max(rise)} above a chord")


def check_derivative(seen: Seen, separable: bool, single: bool) -> None:
    """The derivative of the decision is symmetric, positive semidefinite and correct."""
    slope = seen.slope
    size = 1e-12 + np.max(np.abs(slope))
    loose = 1e-2 if single else 1e-6
    if not np.all(np.isfinite(slope)):
        fail("the derivative of the decision is not finite")
    if np.max(np.abs(slope - slope.T)) > loose * size:
        fail("the derivative of the decision is not symmetric")
    if np.min(np.linalg.eigvalsh((slope + slope.T) / 2)) < -loose * size:
        fail("the derivative of the decision is not positive semidefinite")
    if separable and np.max(np.abs(slope - np.diag(np.diag(slope)))) > loose * size:
        fail("the map says it is separable, but its derivative is not diagonal")
    if not single and np.max(np.abs(seen.differences - slope)) > 1e-5 * (1 + size):
        fail("the derivative of the decision disagrees with finite differences")


def check_geometry(seen: Geometry, loose: float) -> None:
    """Hoelder's inequality holds, and the potential is as strongly convex as stated."""
    if np.max(seen.pair - seen.bound) > loose * (1 + np.max(seen.bound)):
        fail("the norm and its dual break Hoelder's inequality")
    if np.min(seen.bregman - seen.least) < -loose * (1 + np.max(np.abs(seen.bregman))):
        fail("the potential is less strongly convex than its modulus says")


@compiled
def _look(mirror: MirrorMap, theta: PyTree, key: jax.Array) -> Seen:
    """All values that are checked, from one program."""
    flat, unravel = ravel_pytree(theta)
    noise = jax.random.normal(key, (6, flat.size), flat.dtype)
    thetas = flat + noise * jnp.std(flat) + 0.1 * noise
    before = lambda points: jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), points)
    halfway = lambda a, b: jax.tree.map(lambda x, y: (x + y) / 2, a, b)
    steps = 1e-6 * jnp.eye(flat.size, dtype=flat.dtype)
    n, d = thetas.shape

    decide = lambda flat: mirror.to_primal(unravel(flat))
    flat_decide = lambda flat: ravel_pytree(decide(flat))[0]
    decisions = jax.vmap(decide)(jnp.concatenate([thetas, flat + steps, flat - steps]))
    ws = jax.tree.map(lambda leaf: leaf[:n], decisions)
    around = jax.vmap(lambda w: ravel_pytree(w)[0])(jax.tree.map(lambda leaf: leaf[n:], decisions))
    values = jax.vmap(lambda flat: mirror.conjugate(unravel(flat)))
    duals = jax.vmap(unravel)(thetas)
    each = lambda one: jax.vmap(lambda w: jax.vmap(lambda theta: one(w, theta))(duals))(ws)
    back = jax.vmap(lambda w: mirror.to_primal(mirror.to_dual(w)))(ws)
    held = jax.vmap(lambda theta: mirror.to_primal(mirror.retract(theta)))
    later = lambda keep: jax.vmap(lambda theta, z: mirror.to_primal(tree.add(keep(theta), z)))(
        duals, before(duals)
    )
    return Seen(
        ws,
        jnp.ones(n, bool) if mirror.contains is None else jax.vmap(mirror.contains)(ws),
        jax.vmap(mirror.potential)(ws),
        values(thetas),
        each(tree.vdot),
        jax.vmap(mirror.potential)(halfway(ws, before(ws))),
        values(halfway(thetas, before(thetas))),
        jax.jacfwd(flat_decide)(flat),
        ((around[:d] - around[d:]) / 2e-6).T,
        back,
        None if mirror.retraction is None else held(duals),
        None if mirror.centering is None else (later(mirror.center), later(lambda theta: theta)),
        _geometry(mirror, duals, ws, before(ws)),
    )


def _geometry(mirror: MirrorMap, thetas: PyTree, ws: PyTree, others: PyTree) -> Geometry | None:
    if mirror.norm is None or mirror.modulus is None:
        return None
    norm = mirror.norm
    apart = jax.vmap(lambda u, w: norm.primal(tree.sub(u, w)))(others, ws)
    return Geometry(
        jax.vmap(lambda w, theta: jnp.abs(tree.vdot(w, theta)))(ws, thetas),
        jax.vmap(norm.primal)(ws) * jax.vmap(norm.dual)(thetas),
        jax.vmap(mirror.bregman)(others, ws),
        mirror.modulus * apart**2 / 2,
    )


def check_regularizer(regularizer: Process, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Check `regularizer` on a short stream; an AssertionError names the property that it breaks.

    Its statistics keep their structure. In the first, a middle and the last round it gives a mirror
    map, the same with and without jit, that passes `check_mirror` near the dual of `ftrl`. A stream
    with a context is played by a linear predictor.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=6, features=4)
    >>> olx.testing.check_regularizer(
    ...     olx.regularizers.adagrad(), olx.losses.squared, rounds, jnp.zeros(4)
    ... )
    """
    learner = ftrl(0.1, regularizer)
    if rounds.context is not None:
        learner = linear(learner)
    keep = lambda state, feedback: (state, feedback.context)
    trace = rollout(learner, loss, rounds, params, record=keep).trace
    length = jax.tree.leaves(rounds)[0].shape[0]
    for t in {0, length // 2, length - 1}:
        state, context = jax.tree.map(lambda leaf, t=t: leaf[t], trace)
        f = regularizer.at(state.stats, context)
        if not isinstance(f, MirrorMap):
            fail(f"at round {t} the regularizer gives a {type(f).__name__}, not a MirrorMap")
        theta = state.theta.value
        slow, fast = f.conjugate(theta), jax.jit(_conjugate_at)(regularizer, state, context)
        close(f"jit changes the conjugate at round {t}", fast, slow, 1e-6)
        noise = tree.random_like(jax.random.key(t), theta, dtype=jnp.result_type(slow))
        check_mirror(f, tree.add(theta, noise))


def _conjugate_at(regularizer: Process, state, context):
    return regularizer.at(state.stats, context).conjugate(state.theta.value)


@public
def check_loss(loss: ScoreLoss, scores: Any, outcomes: Any) -> None:
    """Check that a loss and its slope agree; an AssertionError names what differs.

    `value_and_slope_fn`, if given, must give the values of `value_fn` and their derivative. The
    values must be those of the batch if they are computed one by one.

    scores, outcomes: arrays with one score and one outcome per entry of the first axis; scores that
        avoid the kinks of the loss. Use float64.

    >>> import jax.numpy as jnp, olx
    >>> scores = jnp.linspace(-3.0, 3.0, 7)
    >>> olx.testing.check_loss(olx.losses.logistic, scores, jnp.ones(7))
    """
    check.instance("loss", loss, ScoreLoss)
    check.numbers("scores", scores)
    check.numbers("outcomes", outcomes)
    scores, outcomes = jnp.asarray(scores), jnp.asarray(outcomes)
    if scores.ndim < 1 or scores.shape[:1] != outcomes.shape[:1]:
        raise RefusedType(
            f"`scores` has shape {scores.shape}, `outcomes` {outcomes.shape}; give one "
            "outcome per score."
        )
    (values, slopes), (wanted, derivatives), whole = _look_at_loss(loss, scores, outcomes)
    rtol = 1e-12 if scores.dtype == np.float64 else 1e-5
    close("a batch of scores changes the values", whole, wanted, rtol)
    close("`value_and_slope_fn` gives other values than `value_fn`", values, wanted, rtol)
    close("`value_and_slope_fn` gives another slope than `jax.grad`", slopes, derivatives, rtol)


@compiled
def _look_at_loss(loss: ScoreLoss, scores: jax.Array, outcomes: jax.Array) -> tuple:
    given = jax.vmap(loss.value_and_slope)(scores, outcomes)
    derived = jax.vmap(jax.value_and_grad(loss))(scores, outcomes)
    return given, derived, loss(scores, outcomes)
