r"""Regret of gradient descent with a fixed step size, on the losses themselves.

For `md` and `ogd` with a mirror map that states its norm, and $G_t = \max_{s \le t} \|g_s\|_*$,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac{B_\psi(u, w_1)}{\eta} + \frac{\eta}{2\beta}
  \sum_{s \le t} \|g_s\|_*^2 \le \frac{B_\psi(u, w_1)}{\eta} + \frac{\eta t}{2\beta} G_t^2.$$

Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, theorems 14.5 and 14.6.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx._refusal import public
from olx.core import Feedback, Learner, Loss
from olx.frameworks.lift import dot
from olx.frameworks.regret import Regret, add_regret, open_regret, regret_sides
from olx.theorem import DOMAIN, About, Certificate, Theorem


class Descent(NamedTuple):
    regret: Regret
    start: Float[Array, ""]  # B(u, w_1) / eta
    energy: Float[Array, ""]  # the sum of |g|^2 / (2 beta)
    largest: Float[Array, ""]  # the largest term of `energy`


def open_descent(hp: Any, state: Any, u: PyTree) -> Descent:
    regret = open_regret(state.theta, u)
    zero = jnp.zeros_like(regret.left)
    start = hp.mirror.gap(u, hp.mirror.retract(state.theta)) / hp.eta.at(None)
    return Descent(regret, start, zero, zero)


def add_descent(hp: Any, account: Descent, state: Any, feedback: Feedback, u: PyTree) -> Descent:
    return _add(hp, account, add_regret(account.regret, feedback, u), feedback)


def descent_sides(hp: Any, account: Descent, u: PyTree) -> Certificate:
    eta, t = hp.eta.at(None), account.regret.rounds.past
    right = account.start + eta * account.energy
    published = account.start + eta * t * account.largest
    return regret_sides(account.regret, right, published).given(DOMAIN, hp.mirror.outside(u) == 0)


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


def _add_surrogate(surrogate, apply, hp, account, state, feedback, u) -> Descent:
    other = surrogate(apply(u, feedback.context), feedback.outcome)
    return _add(hp, account, add_regret(account.regret, feedback, u, other=other), feedback)


def _add(hp: Any, account: Descent, regret: Regret, feedback: Feedback) -> Descent:
    energy = hp.mirror.energy(feedback.grad)
    largest = jnp.maximum(account.largest, energy)
    return Descent(regret, account.start, account.energy + energy, largest)


def _descends(learner: Learner) -> bool:
    return any(one.add_fn.func is add_descent for one in learner.theorems)
