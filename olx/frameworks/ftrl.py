r"""Follow the regularized leader, with a time-varying regularizer and any update vectors.

$$\theta_1 = 0, \qquad w_t = \nabla f_t^*(\theta_t) = \arg\max_w \langle\theta_t, w\rangle - f_t(w),
  \qquad \theta_{t+1} = \theta_t + z_t.$$

$f_t$ may depend on all earlier rounds and on the context $x_t$, which is known before predicting.
$z_t$ is $-\eta g_t$ unless another direction is given. Dual averaging, AdaGrad and composite
losses are choices of $f_t$. The forecaster of Vovk, Azoury and Warmuth and the classification
algorithms are choices of $f_t$ and $z_t$. The bound is the master inequality of
`olx.frameworks.master`, divided by the step size.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, algorithm 1.
"""

from collections.abc import Callable
from typing import NamedTuple

from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx._numeric import Sum
from olx._pytree import as_tree, pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Process, Scalar
from olx.facts import Facts, Separable
from olx.frameworks import master
from olx.frameworks.master import Step
from olx.mirrors.base import MirrorMap
from olx.regularizers.growing import as_regularizer


@pytree
class FTRLHparams:
    eta: Scalar
    regularizer: Process
    direction: Partial


class FTRLState(NamedTuple):
    theta: Sum  # a compensated sum: theta grows as fast as f_t
    stats: PyTree


def downhill(feedback: Feedback) -> PyTree:
    """Minus the gradient, times the weight of the round."""
    return tree.scale(-feedback.weight, feedback.grad)


@public
def ftrl(
    eta: Scalar,
    regularizer: MirrorMap | Process,
    direction: Callable[[Feedback], PyTree] = downhill,
) -> Learner:
    r"""Sum `eta` times the directions and play $\nabla f_t^*$ of the sum.

    regularizer: a `MirrorMap`, or one of `olx.regularizers` for an $f_t$ that changes.
    direction: from the feedback of a round, what is added to the dual (before the factor `eta`);
        a named function or a `Partial`. It must multiply by `feedback.weight`. Inside `linear` the
        feedback also holds $x_t$ and $y_t$.

    Only the shape of `params` is used: the first decision is the minimizer of $f_1$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=5)
    >>> lasso = olx.regularizers.composite(olx.convex.l1(5.0), rate=0.1)
    >>> learner = olx.linear(olx.ftrl(0.1, lasso))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, jnp.zeros(5)).holds)
    True
    """
    eta = check.positive("eta", eta)
    check.function("direction", direction)
    regularizer = as_regularizer("regularizer", regularizer)
    hparams = FTRLHparams(eta, regularizer, as_tree(direction))
    alone = regularizer.separable and direction is downhill
    facts = Facts(coordinates=Separable() if alone else None)
    theorems = (master_inequality,)
    return Learner(hparams, init, predict, update, facts=facts, theorems=theorems)


def init(hp: FTRLHparams, params: PyTree) -> FTRLState:
    return FTRLState(_numeric.start(tree.zeros_like(params)), hp.regularizer.init(params))


def predict(hp: FTRLHparams, state: FTRLState, context: PyTree) -> PyTree:
    return hp.regularizer.at(state.stats, context).to_primal(state.theta.value)


def update(hp: FTRLHparams, state: FTRLState, feedback: Feedback) -> FTRLState:
    f = hp.regularizer.at(state.stats, feedback.context)
    theta = _numeric.add(Sum(f.center(state.theta.value), state.theta.rest), _move(hp, feedback))
    return FTRLState(theta, hp.regularizer.update(state.stats, feedback))


def step(hp: FTRLHparams, state: FTRLState, feedback: Feedback) -> Step:
    """The round in the notation of the lemma."""
    f = hp.regularizer.at(state.stats, feedback.context)
    theta, after = state.theta.value, update(hp, state, feedback).theta.value
    return Step(f, theta, theta, _move(hp, feedback), feedback.action, after)


master_inequality = master.inequality(step)


def _move(hp: FTRLHparams, feedback: Feedback) -> PyTree:
    return tree.scale(hp.eta, hp.direction(feedback))
