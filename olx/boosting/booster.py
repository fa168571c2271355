r"""Batch boosting as a game of experts: the examples are the experts, the weak learner is nature.

In round $t$ the booster plays a distribution $p_t$ over $N$ labelled examples, the weak learner
answers with a hypothesis $h_t$, and the outcome is $v_{t,i} = y_i h_t(x_i) \in [-1, 1]$. An example
pays for being classified correctly,

$$\ell_{t,i} = \frac{1 + v_{t,i}}2, \qquad \text{which is } 1\{h_t(x_i) = y_i\} \text{ for }
  h_t(x_i) = \pm 1.$$

So any learner of experts is a booster, and its regret says how well the examples are classified.
The strong hypothesis is $\operatorname{sign} \sum_t \alpha_t h_t(x)$. Some boosters choose the
coefficient $\alpha_t$ from $p_t$ and $v_t$: it is then the weight of the round for the learner of
experts. AdaBoost is Hedge with such weights. All others have $\alpha_t = 1$.

The loss of the booster is $\langle p_t, v_t\rangle$, twice the edge $\gamma_t$ of the hypothesis.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2; Shalev-Shwartz, Online Learning:
Theory, Algorithms, and Applications, 2007, section 6.1.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.losses.points import linear_feedback
from olx.needs import Need, in_range
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs, lift_theorems


@pytree
class Coefficient:
    r"""How much a hypothesis counts.

    pace_fn: the $a$ of the theorem $\ln \sum_i p_i e^{-\alpha v_i} \le a^2 / 2 - a \langle p,
        v\rangle$; None if the booster does not weigh examples by the exponential loss.
    promised_fn: the edge that the weak learner must have for the published bound; None if it is the
        smallest edge seen.
    """

    hparams: PyTree
    alpha_fn: Callable[..., Array | float] = static()  # (hparams, p, v) -> alpha
    pace_fn: Callable[..., Array] | None = static(default=None)  # (hparams, <p, v>) -> a
    promised_fn: Callable[..., Scalar] | None = static(default=None)  # (hparams) -> gamma

    def alpha(self, weights: PyTree, outcome: PyTree) -> Array:
        (p, _), (v, _) = ravel_pytree(weights), ravel_pytree(outcome)
        return jnp.asarray(self.alpha_fn(self.hparams, p, v), p.dtype)


@pytree
class BoosterHparams:
    inner: Learner
    coefficient: Coefficient


@public
def booster(inner: Learner) -> Learner:
    r"""The booster made of a learner of experts; every hypothesis has one vote.

    inner: any learner of `olx.experts`, or `olx.hedge`, for losses in [0, 1].

    An outcome is the vector $y_i h(x_i)$, with one entry per example. `params` holds the first
    weights of the examples. The theorems of `inner` bound its regret; `u` is a distribution over
    examples.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]))
    >>> learner = olx.boosting.booster(olx.hedge(1.0))
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(3) / 3, record=olx.record.actions
    ... )
    >>> [round(float(p), 3) for p in run.trace[1]]
    [0.212, 0.576, 0.212]
    """
    check.instance("inner", inner, Learner)
    return weighted("booster", inner, Coefficient(None, one))


def weighted(
    owner: str,
    inner: Learner,
    coefficient: Coefficient,
    *theorems: Theorem,
    needs: tuple[Need, ...] = (),
) -> Learner:
    """The booster whose rounds have the weight `coefficient` for `inner`.

    theorems: those of the booster, before the ones of `inner`.
    needs: demands on outcomes besides that they lie in [-1, 1].
    """
    bounded = in_unit(owner, "y * h(x)")
    return Learner(
        BoosterHparams(inner, coefficient),
        init,
        predict,
        update,
        needs=(bounded, *needs, *lift_needs(_VIEW, inner)),
        theorems=(*theorems, *lift_theorems(_VIEW, inner)),
    )


def as_booster(inner: Learner) -> Learner:
    """The learner itself if it is a booster, else the booster made of it."""
    check.instance("inner", inner, Learner)
    return inner if isinstance(inner.hparams, BoosterHparams) else booster(inner)


def one(hparams: None, p: Array, v: Array) -> Scalar:
    """Every hypothesis has one vote."""
    return 1.0


def init(hp: BoosterHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: BoosterHparams, state: PyTree, context: PyTree) -> PyTree:
    return hp.inner.predict(state, context)


def update(hp: BoosterHparams, state: PyTree, feedback: Feedback) -> PyTree:
    return hp.inner.update(state, inner_feedback(hp, state, feedback))


def inner_feedback(hp: BoosterHparams, state: PyTree, feedback: Feedback) -> Feedback:
    """The feedback of the inner learner: the losses of the examples, and the weight alpha."""
    losses = jax.tree.map(lambda v: (1 + v) / 2, feedback.outcome)
    weight = feedback.weight * hp.coefficient.alpha(feedback.action, feedback.outcome)
    return linear_feedback(feedback.action, losses, weight, feedback.context)


_VIEW = WrapperView(state=None, parts=("params", "weight"), feedback_fn=inner_feedback)


def in_unit(owner: str, what: str) -> Need:
    """The need for outcomes in [-1, 1]."""
    remedy = "divide the predictions of the weak learner by their largest size"
    return Need("outcome", _in_unit, f"{what} must lie in [-1, 1]", owner, remedy)


def _in_unit(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(lambda v: in_range(v, -1.0, 1.0), rounds.outcome)
