r"""Follow the regularized leader with a step size set by the past regret: AdaFTRL.

$$w_t = \arg\min_{w \in S}\; \Big\langle \sum_{s<t} g_s, w \Big\rangle + \lambda_t \psi(w), \qquad
  \lambda_t = \lambda_1 + \frac{\Delta_{t-1}}{C}, \qquad \Delta_t = \sum_{s \le t} \delta_s,$$

where $\delta_t = \lambda_t B_{\psi^*}(\theta_{t+1}/\lambda_t, \theta_t/\lambda_t)$ is the
mixability gap, the term of round $t$ in the regret bound. Neither the number of rounds nor the size
of the losses must be known. The master inequality bounds the regret; for $\psi \ge 0$ it implies

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \lambda_t \psi(u) + \Delta_t
  \le \lambda_1 \psi(u) + \Big(1 + \frac{\psi(u)}{C}\Big) \Delta_t.$$

With $C = 1$ it is AdaFTRL. With the entropy and $C = \ln n$ it is AdaHedge for any linear losses;
`olx.experts.adahedge` is AdaHedge for experts, with a prior and confidences. Both papers start from
$\lambda_1 = 0$; here $\lambda_1$ is a small positive number.

De Rooij, van Erven, Grunwald, Koolen, Follow the Leader If You Can, Hedge If You Must, 2014;
Orabona, Pal, Scale-Free Algorithms for Online Linear Optimization, 2015.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import accounts
from olx.frameworks.accounts import Master, Step
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import scale
from olx.theorem import Theorem


@pytree
class SelfConfidentHparams:
    mirror: MirrorMap
    complexity: Scalar
    start: Scalar


class SelfConfidentState(NamedTuple):
    theta: PyTree
    paid: Sum


@public
def self_confident(mirror: MirrorMap, complexity: Scalar = 1.0, start: Scalar = 1e-6) -> Learner:
    r"""Follow the regularized leader with an automatic step size, for a bounded domain.

    mirror: a non-negative potential on a bounded domain: the entropies, the Euclidean ball, box or
        simplex.
    complexity: $C$, best the largest $\psi(u)$ to compete with: $\ln n$ for the entropy,
        $r^2/2$ for a Euclidean ball.
    start: $\lambda_1$, positive and small compared with the losses.

    Only the shape of `params` is used: the first decision minimizes the potential.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> learner = olx.first_order.self_confident(olx.mirrors.negative_entropy(), jnp.log(2.0))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2) / 2)
    >>> bool(jnp.allclose(run.losses[:2], jnp.array([0.5, 0.8]), atol=1e-3))
    True
    """
    check.instance("mirror", mirror, MirrorMap)
    complexity = check.positive("complexity", complexity)
    start = check.positive("start", start)
    hparams = SelfConfidentHparams(mirror, complexity, start)
    return Learner(hparams, init, predict, update, theorems=(mixability_gaps,))


def init(hp: SelfConfidentHparams, params: PyTree) -> SelfConfidentState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return SelfConfidentState(tree.zeros_like(params), _numeric.start(zero))


def predict(hp: SelfConfidentHparams, state: SelfConfidentState, context: PyTree) -> PyTree:
    return _at(hp, state.paid.value).to_primal(state.theta)


def update(
    hp: SelfConfidentHparams, state: SelfConfidentState, feedback: Feedback
) -> SelfConfidentState:
    theta, z = hp.mirror.center(state.theta), _move(feedback)
    gap = _gap(_at(hp, state.paid.value), theta, z)
    return SelfConfidentState(tree.add(theta, z), _numeric.add(state.paid, gap))


class Account(NamedTuple):
    lemma: Master
    level: Float[Array, ""]  # lambda_t
    paid: Float[Array, ""]  # Delta_t


def open_account(hp: SelfConfidentHparams, state: SelfConfidentState, u: PyTree) -> Account:
    zero = jnp.zeros_like(state.paid.value)
    return Account(accounts.open_master(state.theta, u), zero, zero)


def add_round(
    hp: SelfConfidentHparams,
    account: Account,
    state: SelfConfidentState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    theta, before, new = state.theta, state.paid.value, update(hp, state, feedback)
    step = Step(_at(hp, before), theta, theta, _move(feedback), feedback.action, new.theta)
    lemma = accounts.add_master(account.lemma, step, u)
    return Account(lemma, hp.start + before / hp.complexity, new.paid.value)


def both_sides(hp: SelfConfidentHparams, account: Account, u: PyTree) -> Certificate:
    proof = accounts.master_sides(account.lemma, 1.0)
    published = account.level * hp.mirror.potential(u) + account.paid
    return dataclasses.replace(proof, published=published).under(proof.conditions)


mixability_gaps = Theorem(
    "mixability_gaps",
    "De Rooij et al. 2014; Orabona, Pal 2015",
    open_account,
    add_round,
    both_sides,
)


def _at(hp: SelfConfidentHparams, paid: Array) -> MirrorMap:
    return scale(hp.mirror, hp.start + paid / hp.complexity)


def _gap(f: MirrorMap, theta: PyTree, z: PyTree) -> Array:
    r"""$B_{f^*}(\theta + z, \theta)$, clipped to the interval from 0 to $\langle z, w' - w\rangle$.

    The exact value lies in it; with rounding it may not, if $f^*$ is large and the move small.
    """
    after = tree.add(theta, z)
    here, w = jax.value_and_grad(f.conjugate)(theta)
    there, new = jax.value_and_grad(f.conjugate)(after)
    gap, most = there - here - tree.vdot(z, w), tree.vdot(z, tree.sub(new, w))
    gap = jnp.where(gap > most, most, gap)
    return jnp.where(gap <= 0, 0.0, gap)


def _move(feedback: Feedback) -> PyTree:
    return tree.scale(-feedback.weight, feedback.grad)
