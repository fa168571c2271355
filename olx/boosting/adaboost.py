r"""AdaBoost: the coefficient that makes the exponential loss smallest, for hypotheses $\pm 1$.

$$p_{t,i} \propto e^{-\sum_{s < t} \alpha_s y_i h_s(x_i)}, \qquad
  \alpha_t = \min\Big\{c, \frac12 \ln \frac{W_t^+}{W_t^-}\Big\},$$

with $W_t^+$ and $W_t^-$ the weights of the examples that $h_t$ classifies correctly and wrongly,
and no cap $c$ in the plain form. A hypothesis may abstain by 0. A hypothesis without a positive
edge has the coefficient 0.

It is the locally optimal rule of the primal-dual framework, with the largest step $c$. `majority`
says why it is stated as Hedge. Each round of the plain form multiplies the exponential loss by at
most $e^{-\langle p_t, v_t\rangle^2 / 2}$. With the cap $2 \gamma$ the training error after $T$
rounds is at most $e^{-2 \gamma^2 T}$ if every edge is at least $\gamma$: see
`olx.boosting.exponential`.

Freund, Schapire, A Decision-Theoretic Generalization of On-Line Learning and an Application to
Boosting, 1997; Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (6.5).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.boosting.booster import Coefficient, largest, weighted
from olx.boosting.exponential import EXPONENTIAL
from olx.core import Learner, Scalar
from olx.frameworks.omd import hedge
from olx.needs import Need


@public
def adaboost(cap: Scalar | None = None) -> Learner:
    r"""AdaBoost for hypotheses of -1 and +1, and 0 where a hypothesis abstains.

    cap: the largest coefficient; $2 \gamma$ for a weak learner with the edge $\gamma$. Without it a
        hypothesis that makes no error, whose coefficient would be infinite, has that of an error of
        the size of rounding: 18 in double precision, 8 in single precision.

    For real hypotheses there are `line_search` and `gentleboost`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]] * 20))
    >>> uniform = jnp.ones(3) / 3
    >>> learner = olx.boosting.adaboost()
    >>> proof = olx.certify(learner, olx.losses.linear_loss, rounds, uniform, uniform)
    >>> bool(proof.holds)
    True
    """
    rule = exact(largest(cap), alpha)
    remedy = "take `olx.boosting.line_search` or `olx.boosting.gentleboost` for real hypotheses"
    need = Need("outcome", _are_signs, "y * h(x) must be -1, 0 or +1", "adaboost", remedy)
    return weighted("adaboost", hedge(2.0), rule, *EXPONENTIAL, needs=(need,))


def exact(cap: Scalar | None, alpha_fn: Any) -> Coefficient:
    """The best coefficient up to `cap`, with its theorem."""
    return Coefficient(cap, alpha_fn, pace, None if cap is None else promised)


def alpha(cap: Scalar | None, p: Array, v: Array) -> Array:
    right, wrong = (jnp.sum(jnp.where(side, p, 0.0)) for side in (v > 0, v < 0))
    ratio = safe.divide(right, wrong, 1.0, (wrong > 0) & (right > 0))
    best = jnp.where(wrong > 0, jnp.log(ratio) / 2, rounding_error(p))
    best = best if cap is None else jnp.minimum(best, cap)
    return jnp.where(right > wrong, best, 0.0)


def rounding_error(p: Array) -> float:
    """The coefficient of a hypothesis whose error is the rounding error."""
    return -float(np.log(jnp.finfo(p.dtype).eps)) / 2


def pace(cap: Scalar | None, edge: Array) -> Array:
    """The step of the bound: the edge, but at most the cap."""
    ahead = jnp.maximum(edge, 0.0)
    return ahead if cap is None else jnp.minimum(ahead, cap)


def promised(cap: Scalar) -> Scalar:
    """The edge for which the cap is twice the edge."""
    return cap / 2


def _are_signs(hparams: Any, params: PyTree, rounds: Any) -> Any:
    return jax.tree.map(lambda v: (v == 1) | (v == -1) | (v == 0), rounds.outcome)
