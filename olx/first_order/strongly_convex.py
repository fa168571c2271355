r"""Mirror descent for strongly convex losses: logarithmic regret, or an average of late rounds.

Every loss is $\sigma$-strongly convex with respect to $\psi$: $\ell(u) \ge \ell(w) + \langle g, u -
w\rangle + \sigma B_\psi(u, w)$. An example is $\sigma \psi$ plus any convex function. Both learners
take steps of the form

$$w_{t+1} = \nabla\psi^*\big(\nabla\psi(w_t) - \eta_t g_t\big).$$

`strongly_convex_md` has $\eta_t = 1 / (\sigma t)$, and its regret is at most $\max_t \|g_t\|_*^2
\,(1 + \ln T) / (2\sigma\beta)$. The Euclidean map gives projected gradient descent, the entropy a
multiplicative update. `floored_entropy`, with a lower bound for every weight, keeps the gradients
of $\sigma\psi$ bounded.

`strongly_convex_ogd` has $\psi$ Euclidean and an output that favours late rounds,

$$\eta_t = \frac{2}{\sigma(t+1)}, \qquad \bar w_T = \sum_{t \le T} \frac{2(t+1)}{T(T+3)}\, w_t.$$

Later rounds have a larger weight in the output and in the regret. So the bound has no logarithm:

$$\sum_{s \le t} \frac{2(s+1)}{t(t+3)} \big(\ell_s(w_s) - \ell_s(u)\big) \le
  \frac{2 \max_{s \le t} \|g_s\|_*^2}{\sigma\beta(t+3)}.$$

It is published for the Euclidean norm. The proof only needs
$\eta_t \langle g_t, w_t - u\rangle \le B(u, w_t) - B(u, w_{t+1}) + D_t$ with
$D_t = B_{\psi^*}(\nabla\psi(w_t) - \eta_t g_t, \nabla\psi(w_t))$, which holds for any mirror map.
With each loss replaced by its lower bound from strong convexity,

$$\sum_{s \le t} \frac{2(s+1)}{t(t+3)} \big( \langle g_s, w_s - u\rangle - \sigma B_\psi(u, w_s)
  \big) \le \frac{4}{\sigma t(t+3)} \sum_{s \le t} \frac{D_s}{\eta_s^2}, \qquad
  D_s \le \frac{\eta_s^2 \|g_s\|_*^2}{2\beta}.$$

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1, theorem 5;
Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, theorem 14.12.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx._words import computed
from olx.certificate import DOMAIN, Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import accounts
from olx.frameworks.accounts import Regret
from olx.frameworks.md import MDHparams, MDState, md
from olx.mirrors.base import MirrorMap, curved_start, start_inside
from olx.mirrors.euclidean import euclidean
from olx.schedules.fixed import DecayHparams, decay
from olx.theorem import About, Theorem


@public
def strongly_convex_md(sigma: Scalar, mirror: MirrorMap | None = None) -> Learner:
    r"""Mirror descent from `params` with steps $1/(\sigma t)$, for strongly convex losses.

    sigma: how strongly convex every loss is with respect to the potential; positive.
    mirror: `euclidean()` if None; also `euclidean(domain)`, `negative_entropy()`,
        `floored_entropy(floor)`.

    >>> import jax.numpy as jnp, olx
    >>> ball = olx.mirrors.euclidean(olx.convex.sets.ball(1.0))
    >>> learner = olx.first_order.strongly_convex_md(0.5, ball)
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -1.0, -1.0]
    """
    sigma = check.positive("sigma", sigma)
    learner = md(decay(1 / sigma, power=1.0), euclidean() if mirror is None else mirror)
    learner = computed(learner, sigma=_sigma)
    if not learner.hparams.mirror.states_norm:
        return learner
    return learner.carrying(strongly_convex_regret(sigma))


def _sigma(learner: Learner) -> Scalar:
    return 1 / learner.hparams.eta.hparams.eta


class DecayAccount(NamedTuple):
    regret: Regret
    largest: Float[Array, ""]  # the largest |g|^2 / (2 beta)
    steps: Bool[Array, ""]  # whether all steps were 1 / (sigma t)


@public
def strongly_convex_regret(sigma: Scalar) -> Theorem:
    """Theorem 5, for any `md` with steps `decay(1 / sigma, power=1.0)`."""
    sigma = check.positive("sigma", sigma)
    parts = open_decay, Partial(add_decay, sigma), Partial(decay_sides, sigma)
    source = "Shalev-Shwartz 2007, theorem 5"
    return Theorem("strongly_convex_regret", source, *parts, about=DECAYING)


def open_decay(hp: MDHparams, state: MDState, u: PyTree) -> DecayAccount:
    regret = accounts.open_regret(state.theta, u)
    return DecayAccount(regret, jnp.zeros_like(regret.left), jnp.ones((), bool))


def add_decay(
    sigma: Scalar,
    hp: MDHparams,
    account: DecayAccount,
    state: MDState,
    feedback: Feedback,
    u: PyTree,
) -> DecayAccount:
    bend = accounts.divergence(hp.mirror, u, hp.mirror.retract(state.theta))
    regret = accounts.add_regret(
        account.regret, feedback, u, bend=tuple(sigma * part for part in bend)
    )
    step = hp.eta.at(state.stats, feedback.context) * sigma * regret.rounds.past
    steps = account.steps & (jnp.abs(step - 1) <= 64 * jnp.finfo(step.dtype).eps)
    energy = hp.mirror.energy(feedback.grad)
    assert energy is not None  # the theorem is about maps that state their norm
    return DecayAccount(regret, jnp.maximum(account.largest, energy), steps)


def decay_sides(sigma: Scalar, hp: MDHparams, account: DecayAccount, u: PyTree) -> Certificate:
    right = accounts.logarithmic(account.largest, account.regret) / sigma
    proof = accounts.regret_sides(account.regret, right, convex=accounts.STRONGLY_CONVEX)
    inside = hp.mirror.outside(u) == 0
    return proof.under({DOMAIN: inside, "steps must be 1 / (sigma t)": account.steps})


def _decays(learner: Learner) -> bool:
    hp = learner.hparams
    md_by_decay = isinstance(hp, MDHparams) and isinstance(hp.eta.hparams, DecayHparams)
    return md_by_decay and hp.mirror.states_norm


DECAYING = About("an `md` or `ogd` with steps by `decay` and a map that states its norm", _decays)


@pytree
class StronglyConvexHparams:
    sigma: Scalar
    mirror: MirrorMap


class StronglyConvexState(NamedTuple):
    theta: PyTree
    mean: PyTree  # the output: the mean of the decisions so far with weights t + 1
    clock: Clock


@public
def strongly_convex_ogd(sigma: Scalar, domain: ConvexSet | None = None) -> Learner:
    r"""Gradient steps $2/(\sigma(t+1))$ from `params`; the weighted output is `state.mean`.

    sigma: how strongly convex every loss is with respect to the potential; positive.
    domain: a set of `olx.convex.sets`; the whole space if None.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.first_order.strongly_convex_ogd(1.0)
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.array([3.0, 3.0, 3.0]))
    >>> run = olx.rollout(olx.linear(learner), olx.losses.squared, rounds, jnp.zeros(1))
    >>> run.state.theta.tolist(), bool(jnp.allclose(run.state.mean, 7 / 3))
    ([3.0], True)
    """
    sigma = check.positive("sigma", sigma)
    if domain is not None:
        check.instance("domain", domain, ConvexSet)
    hparams = StronglyConvexHparams(sigma, euclidean(domain))
    needs = (start_inside("strongly_convex_ogd"), curved_start("strongly_convex_ogd"))
    theorems = (weighted_parabolas, weighted_regret)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: StronglyConvexHparams, params: PyTree) -> StronglyConvexState:
    theta = hp.mirror.to_dual(params)
    return StronglyConvexState(theta, tree.zeros_like(params), clock.start(hp, params))


def predict(hp: StronglyConvexHparams, state: StronglyConvexState, context: PyTree) -> PyTree:
    return hp.mirror.to_primal(state.theta)


def update(
    hp: StronglyConvexHparams, state: StronglyConvexState, feedback: Feedback
) -> StronglyConvexState:
    t = state.clock.now
    share = 2 * (t + 1) / (t * (t + 3))
    mean = jax.tree.map(lambda mean, w: mean + share * (w - mean), state.mean, feedback.action)
    after = tree.add(hp.mirror.retract(state.theta), _move(hp, t, feedback))
    return StronglyConvexState(after, mean, clock.tick(hp, state.clock, feedback))


class Account(NamedTuple):
    left: Float[Array, ""]
    drift: Float[Array, ""]  # the sum of D / eta^2
    size: Float[Array, ""]
    largest: Float[Array, ""]  # the largest |g|^2 / (2 beta); infinite if the map states no norm
    rounds: Float[Array, ""]
    regret: Regret  # on the losses themselves


def open_account(hp: StronglyConvexHparams, state: StronglyConvexState, u: PyTree) -> Account:
    regret = accounts.open_regret(state.mean, u)
    zero = jnp.zeros_like(regret.left)
    return Account(zero, zero, zero, zero, zero, regret)


def add_round(
    hp: StronglyConvexHparams,
    account: Account,
    state: StronglyConvexState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    f, t, w = hp.mirror, state.clock.now, feedback.action
    eta, here, z = _eta(hp, t), f.retract(state.theta), _move(hp, t, feedback)
    after = tree.add(here, z)
    ends = f.conjugate(after), f.conjugate(here), tree.vdot(z, w)
    bend = tuple(hp.sigma * part for part in accounts.divergence(f, u, here))
    below = tree.vdot(z, tree.sub(u, w)) / eta - bend[0]
    size = sum(map(jnp.abs, ends)) / eta**2 + (t + 1) * (jnp.abs(below) + bend[1])
    energy = f.energy(tree.scale(feedback.weight, feedback.grad))
    return Account(
        account.left + (t + 1) * below,
        account.drift + (ends[0] - ends[1] - ends[2]) / eta**2,
        account.size + size,
        jnp.inf * jnp.ones_like(t) if energy is None else jnp.maximum(account.largest, energy),
        t,
        accounts.add_regret(account.regret, feedback, u, bend=bend, share=t + 1),
    )


def on_parabolas(hp: StronglyConvexHparams, account: Account, u: PyTree) -> Certificate:
    t, share = account.rounds, _share(account)
    return Certificate(
        share * account.left,
        2 * share * account.drift / hp.sigma,
        share * account.size * (1 + 2 / hp.sigma),
        4 * account.largest / (hp.sigma * (t + 3)),
    ).given(DOMAIN, hp.mirror.outside(u) == 0)


def on_losses(hp: StronglyConvexHparams, account: Account, u: PyTree) -> Certificate:
    right = 4 * account.largest / (hp.sigma * (account.rounds + 3))
    proof = accounts.regret_sides(
        account.regret, right, share=_share(account), convex=accounts.STRONGLY_CONVEX
    )
    return proof.given(DOMAIN, hp.mirror.outside(u) == 0)


SOURCE = "Zhang 2023, theorem 14.12"
weighted_parabolas = Theorem("weighted_parabolas", SOURCE, open_account, add_round, on_parabolas)
weighted_regret = Theorem("weighted_regret", SOURCE, open_account, add_round, on_losses)


def _share(account: Account) -> Array:
    return 2 / (account.rounds * (account.rounds + 3))


def _eta(hp: StronglyConvexHparams, t: Array) -> Array:
    return 2 / (hp.sigma * (t + 1))


def _move(hp: StronglyConvexHparams, t: Array, feedback: Feedback) -> PyTree:
    return tree.scale(-_eta(hp, t) * feedback.weight, feedback.grad)
