r"""Exponentiated gradient: mirror descent with the entropy, on weights of a given total.

$$\text{EG: } w_{t,i} = U \frac{e^{U \theta_{t,i}}}{\sum_j e^{U \theta_{t,j}}}, \qquad
  \text{EG}\pm\text{: } w_{t,i} = U \frac{e^{U \theta_{t,i}} - e^{-U \theta_{t,i}}}
  {\sum_j e^{U \theta_{t,j}} + e^{-U \theta_{t,j}}}, \qquad \theta_{t+1} = \theta_t - \eta g_t.$$

EG has positive weights that sum to $U$. EG$\pm$ is EG on the doubled features $(x, -x)$: weights of
both signs whose absolute values sum to less than $U$, with `olx.mirrors.signed_entropy`.

Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997.
"""

from olx import _check as check
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.frameworks.omd import omd
from olx.mirrors.combinators import stretch
from olx.mirrors.entropy import negative_entropy
from olx.mirrors.signed_entropy import signed_entropy


@public
def exponentiated_gradient(eta: Scalar, total: Scalar = 1.0) -> Learner:
    """EG: positive weights that sum to `total`, starting from `params`.

    A point learner; `olx.linear` turns it into a predictor, for any loss.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.linear(exponentiated_gradient(0.5, total=2.0))
    >>> rounds = olx.Rounds(jnp.eye(2)[jnp.array([0, 1, 0, 1])], jnp.array([2.0, 0.0, 2.0, 0.0]))
    >>> olx.rollout(learner, olx.losses.squared, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.145, 0.063, 0.034]
    """
    total = check.positive("total", total)
    return omd(eta, stretch(negative_entropy(), total))


@public
def signed_exponentiated_gradient(eta: Scalar, total: Scalar = 1.0) -> Learner:
    """EG+-: weights of both signs, whose absolute values sum to less than `total`.

    A point learner that starts from `params`, which must meet this; 0 is the natural choice.
    """
    total = check.positive("total", total)
    return omd(eta, signed_entropy(total))
