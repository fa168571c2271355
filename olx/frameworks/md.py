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

With a fixed step and a map that states its norm, the regret on the losses themselves is bounded as
well. With $G_t = \max_{s \le t} \|g_s\|_*$,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac{B_\psi(u, w_1)}{\eta} + \frac{\eta}{2\beta}
  \sum_{s \le t} \|g_s\|_*^2 \le \frac{B_\psi(u, w_1)}{\eta} + \frac{\eta t}{2\beta} G_t^2.$$

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1, lemma 5;
Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, theorems 14.5 and 14.6.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import as_tree, pytree
from olx._refusal import public
from olx.certificate import DOMAIN, Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner, Loss, Process, Scalar
from olx.facts import AddsGradient, Facts
from olx.frameworks import accounts
from olx.frameworks.accounts import Approach, Regret
from olx.frameworks.lift import dot
from olx.frameworks.omd import coordinates_of
from olx.mirrors.base import MirrorMap, curved_start, start_inside
from olx.mirrors.euclidean import euclidean
from olx.schedules.fixed import as_schedule, no_stats
from olx.theorem import About, Theorem


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
    return Learner(
        MDHparams(eta, mirror),
        init,
        predict,
        update,
        facts=Facts(adds=adds, coordinates=coordinates_of(mirror) if eta.separable else None),
        needs=(start_inside("md"), curved_start("md")),
        theorems=(mirror_descent, gradient_descent) if descends else (mirror_descent,),
    )


@public
def ogd(eta: Scalar | Process, domain: ConvexSet | None = None) -> Learner:
    """Projected gradient descent: `md` with the Euclidean map.

    domain: a set of `olx.convex.sets`, such as `ball(1.0)`; the whole space if None.
    """
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


def add_round(
    hp: MDHparams, account: Approach, state: MDState, feedback: Feedback, u: PyTree
) -> Approach:
    f, w = hp.mirror, feedback.action
    eta = hp.eta.at(state.stats, feedback.context)
    here, after = f.retract(state.theta), _step(hp, state.theta, eta, feedback)
    step = tree.sub(after, here)
    ends = f.conjugate(after), f.conjugate(here), tree.vdot(step, w)
    near, far = accounts.divergence(f, u, here), accounts.divergence(f, u, f.retract(after))
    size = sum(map(jnp.abs, ends)) + near[1] + far[1]
    left = tree.vdot(step, tree.sub(u, w))
    drift = ends[0] - ends[1] - ends[2]
    return accounts.add_approach(account, eta, near[0], far[0], left, drift, f.energy(step), size)


mirror_descent = Theorem(
    "mirror_descent",
    "Shalev-Shwartz 2007, lemma 5",
    accounts.open_approach,
    add_round,
    accounts.approach_sides,
)


class Descent(NamedTuple):
    regret: Regret
    start: Float[Array, ""]  # B(u, w_1) / eta
    energy: Float[Array, ""]  # the sum of |g|^2 / (2 beta)
    largest: Float[Array, ""]  # the largest term of `energy`


def open_descent(hp: MDHparams, state: MDState, u: PyTree) -> Descent:
    regret = accounts.open_regret(state.theta, u)
    zero = jnp.zeros_like(regret.left)
    start = hp.mirror.gap(u, hp.mirror.retract(state.theta)) / hp.eta.at(None)
    return Descent(regret, start, zero, zero)


def add_descent(
    hp: MDHparams, account: Descent, state: MDState, feedback: Feedback, u: PyTree
) -> Descent:
    return _add(hp, account, accounts.add_regret(account.regret, feedback, u), feedback)


def descent_sides(hp: MDHparams, account: Descent, u: PyTree) -> Certificate:
    eta, t = hp.eta.at(None), account.regret.rounds.past
    right = account.start + eta * account.energy
    published = account.start + eta * t * account.largest
    return accounts.regret_sides(account.regret, right, published).given(
        DOMAIN, hp.mirror.outside(u) == 0
    )


gradient_descent = Theorem(
    "gradient_descent", "Zhang 2023, theorem 14.5", open_descent, add_descent, descent_sides
)


@public
def surrogate_regret(surrogate: Loss, apply: Callable[[PyTree, PyTree], PyTree] = dot) -> Theorem:
    r"""Theorem 14.6: the comparator has a loss of its own, and $g_t$ need not be a gradient.

    If $\langle g_t, u - w_t\rangle \le \tilde\ell_t(u) - \ell_t(w_t)$ in every round, then
    $\sum_t \ell_t(w_t) - \tilde\ell_t(u)$ has the bound of theorem 14.5.

    surrogate: $\tilde\ell$, a function of the action `apply(u, x)` and the outcome. For the
        Perceptron, with a loss of $\gamma$ per mistake, it is `margin_hinge(gamma)`.
    """
    check.takes("surrogate", surrogate, "action", "outcome")
    check.takes("apply", apply, "u", "x")
    about = About("an `ogd` or `md` with a fixed step and a map that states its norm", _descends)
    source = "Zhang 2023, theorem 14.6"
    add = Partial(_add_surrogate, as_tree(surrogate), as_tree(apply))
    return Theorem("surrogate_regret", source, open_descent, add, descent_sides, about=about)


def _add_surrogate(
    surrogate: Loss,
    apply: Callable[[PyTree, PyTree], PyTree],
    hp: MDHparams,
    account: Descent,
    state: MDState,
    feedback: Feedback,
    u: PyTree,
) -> Descent:
    other = surrogate(apply(u, feedback.context), feedback.outcome)
    return _add(
        hp, account, accounts.add_regret(account.regret, feedback, u, other=other), feedback
    )


def _add(hp: MDHparams, account: Descent, regret: Regret, feedback: Feedback) -> Descent:
    energy = hp.mirror.energy(feedback.grad)
    assert energy is not None  # the theorems are about maps that state their norm
    largest = jnp.maximum(account.largest, energy)
    return Descent(regret, account.start, account.energy + energy, largest)


def _descends(learner: Learner) -> bool:
    return any(one.add_fn.func is add_descent for one in learner.theorems)


def _coefficient(hp: MDHparams, feedback: Feedback) -> Scalar:
    return -hp.eta.at(None, feedback.context) * feedback.weight


def _step(hp: MDHparams, theta: PyTree, eta: Scalar, feedback: Feedback) -> PyTree:
    return tree.add_scale(hp.mirror.retract(theta), -eta * feedback.weight, feedback.grad)
