r"""Follow one expert at a time, drawn from the distribution of an expert learner.

In round $t$ the learner holds $p_t$, draws $i_t \sim p_t$ and pays $\ell_{t, i_t}$. The action is
the vertex $e_{i_t}$, so that `olx.losses.linear_loss` charges the loss of the expert drawn and
regret is measured as for distributions.

`sampled` tells the expert learner what $p_t$ would have paid. Whatever it guarantees for $p_t$ then
holds for the draws, up to luck: with $\rho_t = \max_i \ell_{t,i} - \min_i \ell_{t,i}$, on losses
fixed before the draws, with probability at least $1 - \delta$, for all $t \le T$ at once,

$$\sum_{s \le t} \ell_{s, i_s} - \langle u, \ell_s \rangle \le R_t(u) +
  \sqrt{\tfrac12 \ln\tfrac1\delta \textstyle\sum_{s \le T} \rho_s^2}.$$

`committed` charges the expert learner with the draw itself, regrets $\ell_{t,i_t} - \ell_{t,i}$.
For a learner from a potential (Hedge, NormalHedge.DT) its bound on $\epsilon$-regret, taken at
$\epsilon = \delta / N$, then holds for the draws with probability at least $1 - \delta$.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.5; Azuma, Weighted Sums of Certain
Dependent Random Variables, 1967.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Run, Scalar, Trace
from olx.losses.points import linear_feedback
from olx.needs import PARTS, within


@pytree
class SampledHparams:
    inner: Learner
    key: Array


class SampledState(NamedTuple):
    inner: PyTree
    key: Array  # of this round's draw; predicting twice draws the same


def sampled(inner: Learner, key: Array) -> Learner:
    """Play a vertex drawn from what `inner` plays, and let it learn from its own distribution.

    inner: any learner whose action is a distribution.
    key: of `jax.random`; a batch over keys repeats the game.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 8))
    >>> learner = sampled(olx.hedge(2.0), jax.random.key(0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2) / 2).losses.tolist()[-4:]
    [0.0, 0.0, 0.0, 0.0]
    """
    check.instance("sampled", "inner", inner, Learner)
    needs = within(inner, "inner", *PARTS)
    return Learner(SampledHparams(inner, key), init, predict, update, needs=needs)


def committed(inner: Learner, key: Array) -> Learner:
    """As `sampled`, but `inner` is told that it played the vertex drawn."""
    check.instance("committed", "inner", inner, Learner)
    needs = within(inner, "inner", *PARTS)
    return Learner(SampledHparams(inner, key), init, predict, update_committed, needs=needs)


def init(hp: SampledHparams, params: PyTree) -> SampledState:
    return SampledState(hp.inner.init(params), hp.key)


def predict(hp: SampledHparams, state: SampledState, context: PyTree) -> Float[Array, " N"]:
    return draw(state.key, hp.inner.predict(state.inner, context))


def update(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, _on_average(hp, state, feedback))


def update_committed(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, feedback)


def sampled_bound(learner: Learner, run: Run, u: Float[Array, " N"], delta: Scalar) -> Certificate:
    r"""The regret of the draws of `sampled`: true at all rounds at once with chance $1 - \delta$.

    run: played with `record=olx.record.trace`, on losses fixed before the draws, everyone awake.
    """
    delta = check.above("sampled_bound", "delta", delta, 0.0, 1.0)
    if not isinstance(learner, Learner) or learner.update_fn is not update:
        raise TypeError("sampled_bound: `learner` must be made by `sampled`.")
    if not isinstance(run.trace, Trace) or run.curve is not None:
        raise TypeError(
            "sampled_bound: play the run with record=olx.record.trace and keep all of its rounds."
        )
    hp, trace, feedback = learner.hparams, run.trace, run.trace.feedback
    u = check.comparator("sampled_bound", u, feedback.action[0])
    told = jax.vmap(lambda state, seen: _on_average(hp, state, seen))(trace.state, feedback)
    proof = hp.inner.bound(Trace(trace.state.inner, told), u)
    weight, losses = feedback.weight, feedback.outcome
    spread = weight * (jnp.max(losses, axis=1) - jnp.min(losses, axis=1))
    luck = jnp.sqrt(jnp.log(1 / delta) / 2 * jnp.sum(spread**2))
    left = jnp.cumsum(weight * (feedback.value - losses @ u))
    scale = proof.scale + luck + jnp.cumsum(jnp.abs(weight * feedback.value))
    return Certificate(left, proof.right + luck, scale, theorem="Azuma 1967").under(
        proof.conditions
    )


def draw(key: Array, p: Float[Array, " N"]) -> Float[Array, " N"]:
    """A vertex with the chances `p`, 0 where they are; NaN where they are: divergence shows."""
    vertex = jax.nn.one_hot(jax.random.categorical(key, jnp.log(p)), p.shape[0], dtype=p.dtype)
    total = jnp.sum(p)
    return jnp.where(jnp.isnan(total), jnp.nan, jnp.where(total == 0, 0.0, vertex))


def _on_average(hp: SampledHparams, state: SampledState, feedback: Feedback) -> Feedback:
    p = hp.inner.predict(state.inner, feedback.context)
    return linear_feedback(p, feedback.outcome, feedback.weight, feedback.context)


def _next(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return SampledState(hp.inner.update(state.inner, feedback), jax.random.split(state.key, 1)[0])
