r"""Eager mirror descent: each step starts from the projected decision.

$$w_{t+1} = \nabla\psi^*\big(\nabla\psi(w_t) - \eta_t g_t\big)
  = \arg\min_{w \in S}\; \eta_t \langle g_t, w\rangle + B_\psi(w, w_t).$$

Unlike in the lazy form (`omd`), the next step starts from the projection, so step sizes may shrink.
With $\eta_t = 1/(\sigma t)$ and losses $\sigma$-strongly convex in terms of $\psi$ the regret is
logarithmic. With the Euclidean map it is projected gradient descent. The state is the dual vector.

Lemma 5 summed over rounds, with the Bregman divergence in place of its bound by a norm:

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \sum_{s \le t} \frac{B_\psi(u, w_s) - B_\psi(u,
  w_{s+1}) + B_{\psi^*}(\nabla\psi(w_s) - \eta_s g_s, \nabla\psi(w_s))}{\eta_s}, \qquad
  B_{\psi^*} \le \frac{\eta_s^2 \|g_s\|_*^2}{2\beta}.$$

With a fixed step there is also the theorem of `olx.frameworks.descent`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1, lemma 5.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.convex.sets import ConvexSet
from olx.core import STEP, Feedback, Learner, Process, Scalar
from olx.facts import AddsGradient, Facts, Lump, Lumps, Separable
from olx.frameworks import approach
from olx.frameworks.approach import Account, divergence
from olx.frameworks.descent import gradient_descent
from olx.mirrors.base import MirrorMap, start_inside
from olx.mirrors.euclidean import euclidean
from olx.schedules.fixed import as_schedule, no_stats
from olx.theorem import DOMAIN, Certificate, Theorem


@pytree
class MDHparams:
    eta: Process
    mirror: MirrorMap


class MDState(NamedTuple):
    theta: PyTree
    stats: PyTree


@public
def md(eta: Scalar | Process, mirror: MirrorMap) -> Learner:
    """Take steps of size `eta` in the geometry of `mirror`, starting from `params`.

    eta: a positive number, or one of `olx.schedules`.

    >>> import jax.numpy as jnp, olx
    >>> steps = olx.schedules.decay(1.0, power=1.0)
    >>> learner = olx.md(steps, olx.mirrors.euclidean(olx.convex.sets.ball(2.0)))
    >>> rounds = olx.Rounds(None, jnp.ones((3, 2)))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(2)).losses.round(3).tolist()
    [0.0, -2.0, -2.828]
    """
    constant = not isinstance(eta, Process)
    eta = as_schedule("eta", eta)
    check.instance("mirror", mirror, MirrorMap)
    descends = eta.init_fn is no_stats and mirror.states_norm
    adds = AddsGradient(_coefficient) if constant and mirror.identity else None
    known = mirror.lump is not None and not mirror.lump.additive  # `retract` must not move duals
    lumps = Lumps(_lump) if known else None
    coordinates = Separable(keeps_decision=True) if mirror.separable else lumps
    return Learner(
        MDHparams(eta, mirror),
        init,
        predict,
        update,
        facts=Facts(adds=adds, coordinates=coordinates if eta.separable else None),
        needs=(start_inside("md"),),
        theorems=(mirror_descent, gradient_descent) if descends else (mirror_descent,),
    )


@public
def ogd(eta: Scalar | Process, domain: ConvexSet | None = None) -> Learner:
    """Projected gradient descent: `md` with the Euclidean map.

    domain: a set of `olx.convex.sets`, such as `ball(1.0)`; the whole space if None.
    """
    if isinstance(eta, Process):
        eta.must_give("eta", STEP)
    else:
        eta = check.positive("eta", eta)
    if domain is not None:
        check.instance("domain", domain, ConvexSet)
    return md(eta, euclidean(domain))


def init(hp: MDHparams, params: PyTree) -> MDState:
    return MDState(hp.mirror.to_dual(params), hp.eta.init(params))


def predict(hp: MDHparams, state: MDState, context: PyTree) -> PyTree:
    return hp.mirror.to_primal(state.theta)


def update(hp: MDHparams, state: MDState, feedback: Feedback) -> MDState:
    eta = hp.eta.at(state.stats, feedback.context)
    return MDState(_step(hp, state.theta, eta, feedback), hp.eta.update(state.stats, feedback))


def open_account(hp: MDHparams, state: MDState, u: PyTree) -> Account:
    return approach.open_account(hp.mirror, hp.mirror.retract(state.theta), u)


def add_round(
    hp: MDHparams, account: Account, state: MDState, feedback: Feedback, u: PyTree
) -> Account:
    f, w = hp.mirror, feedback.action
    eta = hp.eta.at(state.stats, feedback.context)
    here, after = f.retract(state.theta), _step(hp, state.theta, eta, feedback)
    step = tree.sub(after, here)
    ends = f.conjugate(after), f.conjugate(here), tree.vdot(step, w)
    near, far = divergence(f, u, here), divergence(f, u, f.retract(after))
    size = sum(map(jnp.abs, ends)) + near[1] + far[1]
    left = tree.vdot(step, tree.sub(u, w))
    drift = ends[0] - ends[1] - ends[2]
    return approach.add_round(account, eta, near[0], far[0], left, drift, f.energy(step), size)


def both_sides(hp: MDHparams, account: Account, u: PyTree) -> Certificate:
    return approach.both_sides(account).given(DOMAIN, hp.mirror.outside(u) == 0)


mirror_descent = Theorem(
    "mirror_descent", "Shalev-Shwartz 2007, lemma 5", open_account, add_round, both_sides
)


def _lump(hp: MDHparams) -> Lump | None:
    return hp.mirror.lump


def _coefficient(hp: MDHparams, feedback: Feedback) -> Scalar:
    return -hp.eta.at(None, feedback.context) * feedback.weight


def _step(hp: MDHparams, theta: PyTree, eta: Scalar, feedback: Feedback) -> PyTree:
    return tree.add_scale(hp.mirror.retract(theta), -eta * feedback.weight, feedback.grad)
