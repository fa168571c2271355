r"""Online mirror descent with a fixed step size; the state is the dual vector (lazy form).

$$\theta_1 = \nabla\psi(w_1), \qquad w_t = \nabla\psi^*(\theta_t), \qquad
  \theta_{t+1} = \theta_t - \eta g_t.$$

In the lazy form the sum of gradients is never projected, only the decision is. The entropy gives
Hedge, the squared Euclidean norm gives lazy gradient descent. A user may give any other potential.

The master inequality of `olx.frameworks.accounts`, divided by the step, bounds the regret on
linearized losses:

$$\sum_{s \le t} \langle g_s, w_s - u \rangle \le \frac1\eta \Big( \psi(u) + \psi^*(\theta_1) -
  \langle \theta_1, u \rangle + \sum_{s \le t} B_{\psi^*}(\theta_{s+1}, \theta_s) \Big).$$

Every term is computed from the mirror map, so the bound holds for any map, also a user's own.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, algorithm 1.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsGradient, Aggregate, Facts, HasAggregate, Separable
from olx.frameworks import accounts
from olx.frameworks.accounts import Step
from olx.mirrors.base import MirrorMap, curved_start, start_inside
from olx.mirrors.entropy import negative_entropy
from olx.needs import Need


@pytree
class OMDHparams:
    eta: Scalar
    mirror: MirrorMap


class OMDState(NamedTuple):
    theta: PyTree


@public
def omd(eta: Scalar, mirror: MirrorMap) -> Learner:
    r"""Take steps of size `eta` in the geometry of `mirror`, starting from `params`.

    eta: positive. For a 1-strongly convex potential the best fixed value in hindsight is
        $\sqrt{2 B_\psi(u, w_1) / \sum_t \|g_t\|_*^2}$.
    mirror: its potential must be differentiable at `params`, the first decision.

    >>> import jax, jax.numpy as jnp, olx
    >>> cosh = olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True)
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=50, features=3)
    >>> learner = olx.linear(olx.omd(0.1, cosh))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(3), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, jnp.ones(3)).holds)
    True
    """
    eta = check.positive("eta", eta)
    check.instance("mirror", mirror, MirrorMap)
    adds = AddsGradient(_coefficient) if mirror.identity else None
    return Learner(
        OMDHparams(eta, mirror),
        init,
        predict,
        update,
        facts=Facts(adds=adds, coordinates=coordinates_of(mirror)),
        needs=(start_inside("omd"), curved_start("omd")),
        theorems=(master_inequality,),
    )


@public
def hedge(eta: Scalar) -> Learner:
    r"""Weight each expert by $\exp(-\eta \cdot \text{its cumulative loss})$: `omd` with entropy.

    `params` are the weights before the first round, up to a positive factor: `jnp.ones(n)` if all
    are equal.
    """
    demand = "`params` is the prior: its weights must be positive"
    prior = Need("params", _are_positive, demand, "hedge", "give jnp.ones(n)")
    return dataclasses.replace(omd(eta, negative_entropy()), needs=(prior,))


def _are_positive(hp: OMDHparams, params: PyTree, rounds: None) -> Array:
    flat = ravel_pytree(params)[0]
    return jnp.all((flat > 0) & jnp.isfinite(flat))


def init(hp: OMDHparams, params: PyTree) -> OMDState:
    return OMDState(hp.mirror.to_dual(params))


def predict(hp: OMDHparams, state: OMDState, context: PyTree) -> PyTree:
    return hp.mirror.to_primal(state.theta)


def update(hp: OMDHparams, state: OMDState, feedback: Feedback) -> OMDState:
    return OMDState(tree.add(hp.mirror.center(state.theta), _move(hp, feedback)))


def step(hp: OMDHparams, state: OMDState, feedback: Feedback) -> Step:
    """The round in the notation of the lemma."""
    theta, after = state.theta, update(hp, state, feedback).theta
    return Step(hp.mirror, theta, theta, _move(hp, feedback), feedback.action, after)


master_inequality = accounts.master_inequality(step, fixed=True)


def _move(hp: OMDHparams, feedback: Feedback) -> PyTree:
    return tree.scale(_coefficient(hp, feedback), feedback.grad)


def coordinates_of(mirror: MirrorMap) -> Separable | HasAggregate | None:
    """What the engine may use of the coordinates of a learner with a `mirror` in its hparams."""
    if mirror.separable:
        return Separable(keeps_decision=True)
    # An additive aggregate moves duals: `center` costs one more pass, and `retract` must not move
    # them.
    known = mirror.aggregate is not None and not mirror.aggregate.additive
    return HasAggregate(_aggregate) if known else None


def _aggregate(hp: PyTree) -> Aggregate | None:
    return hp.mirror.aggregate


def _coefficient(hp: OMDHparams, feedback: Feedback) -> Scalar:
    return -hp.eta * feedback.weight
