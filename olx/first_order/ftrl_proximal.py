r"""FTRL-Proximal: every round adds a quadratic centred at the decision of that round.

$$w_t = \arg\min_w\; \Big\langle \sum_{s<t} g_s, w \Big\rangle + \sum_{s<t} \sum_i
  \frac{\sigma_{s,i}}{2} (w_i - w_{s,i})^2 + \frac{\beta/\eta + \lambda_2}{2} \|w\|^2 +
  \lambda_1 \|w\|_1, \qquad
  \sigma_{s,i} = \frac{\sqrt{n_{s,i} + g_{s,i}^2} - \sqrt{n_{s,i}}}{\eta},$$

where $n_{s,i}$ is the sum of squares of the gradients before round $s$. The state is
$z = \sum_s g_s - \sigma_s w_s$ and $n$. A coordinate is 0 while $|z_i| \le \lambda_1$, else
$w_i = -(z_i - \lambda_1 \mathrm{sign}\, z_i) / ((\beta + \sqrt{n_i})/\eta + \lambda_2)$. Without
penalties this is gradient descent with the step sizes of AdaGrad; with them decisions are sparse.
Unlike in `rda`, each penalty is added once, not once per round.

The strong lemma of the survey, with $h_t$ the function that $w_{t+1}$ minimizes and
$c_t = (\beta + \sqrt{n_{t+1}})/\eta + \lambda_2$ its curvature:

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \lambda_1 \|u\|_1 + \frac{\beta/\eta +
  \lambda_2}{2} \|u\|^2 + \sum_{s \le t} \Big( \sum_i \frac{\sigma_{s,i}}{2} (u_i - w_{s,i})^2 +
  h_s(w_s) - h_s(w_{s+1}) \Big), \qquad
  h_s(w_s) - h_s(w_{s+1}) \le \sum_i \frac{g_{s,i}^2}{2 c_{s,i}}.$$

McMahan et al., Ad Click Prediction: a View from the Trenches, 2013, where $\eta$ is $\alpha$;
McMahan, A Survey of Algorithms and Analysis for Adaptive Online Learning, 2017.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Separable
from olx.theorem import ZERO, summed


@pytree
class FTRLProximalHparams:
    eta: Scalar
    beta: Scalar
    l1: Scalar
    l2: Scalar


class FTRLProximalState(NamedTuple):
    z: PyTree
    n: PyTree


@public
def ftrl_proximal(
    eta: Scalar = 0.05, beta: Scalar = 1.0, l1: Scalar = 0.0, l2: Scalar = 1.0
) -> Learner:
    r"""FTRL-Proximal with step size $\eta / (\beta + \sqrt{n_i})$ per coordinate.

    eta: positive; worth tuning.
    beta: non-negative; keeps the first steps short.
    l1, l2: non-negative; `l1` is compared with $z$, a sum over rounds.

    Only the shape of `params` is used: the first decision is 0.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[3.0, 1.0], [3.0, 1.0]]))
    >>> learner = olx.first_order.ftrl_proximal(eta=1.0, beta=0.0, l1=2.0, l2=0.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> (3 * run.trace[1]).tolist()
    [-1.0, 0.0]
    """
    eta = check.positive("eta", eta)
    beta = check.non_negative("beta", beta)
    l1 = check.non_negative("l1", l1)
    l2 = check.non_negative("l2", l2)
    hparams = FTRLProximalHparams(eta, beta, l1, l2)
    facts, theorems = Facts(coordinates=Separable()), (strong_ftrl,)
    return Learner(hparams, init, predict, update, facts=facts, theorems=theorems)


def init(hp: FTRLProximalHparams, params: PyTree) -> FTRLProximalState:
    return FTRLProximalState(tree.zeros_like(params), tree.zeros_like(params))


def predict(hp: FTRLProximalHparams, state: FTRLProximalState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda z, n: _decide(hp, z, n), state.z, state.n)


def update(
    hp: FTRLProximalHparams, state: FTRLProximalState, feedback: Feedback
) -> FTRLProximalState:
    g = tree.scale(feedback.weight, feedback.grad)
    more = jax.tree.map(lambda n, g: n + g * g, state.n, g)
    shift = lambda z, g, w, old, new: z + g - (safe.sqrt(new) - safe.sqrt(old)) / hp.eta * w
    return FTRLProximalState(jax.tree.map(shift, state.z, g, feedback.action, state.n, more), more)


class Account(NamedTuple):
    left: Float[Array, ""]
    right: Float[Array, ""]
    published: Float[Array, ""]
    size: Float[Array, ""]


def start(hp: FTRLProximalHparams, state: FTRLProximalState, u: PyTree) -> Account:
    check.comparator(u, state.z)
    return Account(ZERO, ZERO, ZERO, ZERO)


def terms(
    hp: FTRLProximalHparams, state: FTRLProximalState, feedback: Feedback, u: PyTree
) -> Account:
    new = update(hp, state, feedback)

    def coordinates(old: Array, n: Array, z: Array, w: Array, g: Array, u: Array) -> Array:
        g, curvature = feedback.weight * g, _curvature(hp, n)
        h = lambda w: z * w + curvature * w * w / 2 + hp.l1 * jnp.abs(w)
        after = h(_decide(hp, z, n))
        sigma = (safe.sqrt(n) - safe.sqrt(old)) / hp.eta
        drop = h(w) - after
        far = sigma * (u - w) ** 2 / 2
        size = jnp.abs(z * w) + curvature * w * w + hp.l1 * jnp.abs(w) + jnp.abs(after)
        sides = g * (w - u), far + drop, far + g * g / (2 * safe.or_one(curvature)), size
        return jnp.stack(sides, axis=-1).reshape(-1, 4).sum(axis=0)

    trees = (state.n, new.n, new.z, feedback.action, feedback.grad, u)
    return Account(*jnp.sum(jnp.stack(jax.tree.leaves(jax.tree.map(coordinates, *trees))), axis=0))


def both_sides(hp: FTRLProximalHparams, account: Account, u: PyTree) -> Certificate:
    squares = jnp.asarray(tree.vdot(u, u))
    start = hp.l1 * tree.norm(u, ord=1) + (hp.beta / hp.eta + hp.l2) / 2 * squares
    right, published = start + account.right, start + account.published
    return Certificate(account.left, right, published + account.size, published)


strong_ftrl = summed("strong_ftrl", "McMahan 2017", terms, both_sides, start)


def _curvature(hp: FTRLProximalHparams, n: Array) -> Array:
    return (hp.beta + safe.sqrt(n)) / hp.eta + hp.l2


def _decide(hp: FTRLProximalHparams, z: Array, n: Array) -> Array:
    curvature = _curvature(hp, n)
    divisor = safe.or_one(curvature)  # the curvature is 0 only if z is 0
    return jnp.where(jnp.abs(z) <= hp.l1, 0.0, (hp.l1 * jnp.sign(z) - z) / divisor)
