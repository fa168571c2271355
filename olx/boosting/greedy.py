r"""A base learner that fits the loss itself, not its slope: the residual, for a squared loss.

In a stage of gradient boosting that starts from $y$, a copy pays $\ell'(y)\, a / L$ for its
prediction $a$. With `greedy` it pays, for a step $\alpha > 0$,

$$a \mapsto \frac{\ell(y + \alpha a)}{\alpha L},$$

which has the same slopes for small $\alpha$ and is as steep. For convex losses with smoothness
$\beta$ on $[-B', B']$, $B' = B + \alpha D$, the regret $R_i = \sum_s \ell_s'(y_s) (A_s - f_s)$ of
copy $i$ to a base function $f$ follows from that in its own losses, for rounds of weight 1:

$$R_i \le \frac1\alpha \sum_s \big( \ell_s(y_s + \alpha A_s) - \ell_s(y_s + \alpha f_s) \big) +
  \frac{\alpha \beta}2 \sum_s f_s^2 \le \frac{G}\alpha + \frac{\alpha \beta}2 D^2 t,$$

with $G$ the largest of these regrets, at least 0. The best step is
$\alpha = \sqrt{2 G / (\beta D^2 t)}$, which gives $R_i \le \sqrt{2 \beta D^2 t\, G}$ (B.5). If
$G = \alpha G'$, as for descent, it is $\alpha = 2 G' / (\beta D^2 t)$, and $R_i \le 2 G'$ (B.6).
`greedy_regret` is this theorem. It holds for each stage with its own $\alpha_i$. The step $e_i$ of
the stage makes copy $i$ fit what its prediction is used for, as long as the stage does not shrink
$y$. Where it does, the result is shrunk too: stages of `gradient_boost_hull` that all fit a target
$z$ exactly, with one $\alpha$, come to rest at $y = z / (1 + \alpha)$: a small $\alpha$ is better
there.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.4 and appendix B.2.1.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.boosting import _stages
from olx.boosting._stages import Tangent
from olx.core import Feedback, Learner, Scalar
from olx.needs import PARTS, within


@pytree
class GreedyHparams:
    inner: Learner
    alpha: Scalar | Float[Array, " n"] | None  # None: the step of the stage


def greedy(inner: Learner, alpha: Scalar | Float[Array, " n"] | None = None) -> Learner:
    r"""Let `inner`, a base learner of gradient boosting, fit the loss around the stage before it.

    inner: a predictor of real numbers.
    alpha: positive; one number, or one per stage, in a vector. If None, it is the step with which
        the booster adds the prediction of the stage: $\eta$ in `gradient_boost`, $2 / (i + 1)$ in
        stage $i$ of `gradient_boost_hull`.

    >>> import jax.numpy as jnp, olx
    >>> from olx.boosting import gradient_boost, greedy
    >>> weak = greedy(olx.linear(olx.ogd(0.5, olx.convex.sets.ball(0.5))))
    >>> learner = gradient_boost(weak, 5, 0.5, olx.losses.squared, bound=0.5)
    >>> rounds = olx.Rounds(jnp.ones((60, 1)), jnp.full(60, 0.5))
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(1))
    >>> bool(run.losses[-1] < 0.01 * run.losses[0])
    True
    """
    check.instance("greedy", "inner", inner, Learner)
    if alpha is not None:
        by_stage = np.ndim(alpha) == 1
        alpha = check.positive("greedy", "alpha", alpha, each=by_stage)
        alpha = jnp.asarray(alpha, float) if by_stage else alpha
    facts, needs = _stages.facts_of(inner), within(inner, "inner", *PARTS)
    return Learner(GreedyHparams(inner, alpha), init, predict, update, facts=facts, needs=needs)


def init(hp: GreedyHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: GreedyHparams, state: PyTree, context: PyTree) -> Array:
    return hp.inner.predict(state, context)


def update(hp: GreedyHparams, state: PyTree, feedback: Feedback) -> PyTree:
    tangent = _tangent(feedback)
    loss = Partial(ahead, tangent, _alpha(hp, tangent))
    value, grad = jax.value_and_grad(loss)(feedback.action)
    return hp.inner.update(state, feedback._replace(loss=loss, value=value, grad=grad))


def ahead(tangent: Tangent, alpha: Scalar, action: Array) -> Array:
    r"""$\ell(y + \alpha a) / (\alpha L)$."""
    return tangent.loss(tangent.offset + alpha * action) / (alpha * tangent.scale)


def _alpha(hp: GreedyHparams, tangent: Tangent) -> Scalar:
    """That of the stage."""
    if hp.alpha is None:
        return tangent.step
    if jnp.ndim(hp.alpha) == 0:
        return hp.alpha
    if jnp.shape(hp.alpha) != (tangent.n,):
        raise TypeError(
            f"greedy: `alpha` has {jnp.size(hp.alpha)} numbers, but the booster has {tangent.n} "
            "stages; give one number per stage, or one for all."
        )
    return jnp.asarray(hp.alpha, tangent.step.dtype)[tangent.stage]


def _tangent(feedback: Feedback) -> Tangent:
    paid = getattr(feedback.loss, "args", ())
    if not paid or not isinstance(paid[0], Tangent):
        raise TypeError(
            "greedy: plays only as the base learner of gradient boosting, which tells it where its "
            "stage starts; give it to `gradient_boost` as it is, and wrap `inner` instead of it."
        )
    return paid[0]
