r"""A loss of a real score, and what theory knows about it.

For a score $s$ and an outcome $y$ the record carries $\ell(s, y)$, its conjugate
$\ell^*(\tau, y) = \sup_s \tau s - \ell(s, y)$ (infinite outside its domain), its proximal map
$\arg\min_s\, c\,\ell(s, y) + \tfrac12 (s - v)^2$, and two constants in the score:

- Lipschitz: $|\ell'(s, y)| \le L$;
- self-bounded: $\tfrac12 \ell'(s, y)^2 \le L\,\ell(s, y)$.

Only a convex $\ell$ must be given. A conjugate or a proximal map that is not given is found
numerically, with its derivatives.

With $s = \langle w, x \rangle$ the constants in $w$ are $L \|x\|_*$ and $L \|x\|_*^2$, and the
conjugate at $\tau x$ is $\ell^*(\tau, y)$.

A loss `of_classes` takes a vector of scores, one per class, and the number of a class. $\tau$ is
then a vector too, and the constants bound its Euclidean norm. With $s = W x$ the dual vectors are
$\tau x^\top$, and the constants in $W$ are those above in every norm of all entries of a matrix
that has $\|\tau x^\top\|_* \le \|\tau\|_2 \|x\|_*$: in every p-norm with $p \ge 2$.

`BallConstants` are those of a class of losses, one for each legal outcome $|y| \le Y$, on scores of
bounded size $|s| \le b$. Upper bounds of the smallest such numbers are enough:

- Lipschitz: $|\ell'(s)| \le L_b$ for $|s| \le b$;
- smooth: $\ell(r) \le \ell(s) + \ell'(s) (r - s) + \frac{\beta_b}2 (r - s)^2$ for
  $|r|, |s| \le b$;
- excess: $\ell(\Pi_b(s)) - \ell(s) \le \epsilon_b |\Pi_b(s) - s|$ for all $s$: what a projection
  on the ball costs. For a convex loss it is the largest slope with which it falls at the boundary,
  outwards.

`signs` is the need for labels of -1 and +1, for losses of the margin and for classifiers.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 3; Luo, Optimal
and Adaptive Online Learning, 2016, section 3.2.1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name
from olx.convex import scalar
from olx.core import Rounds, Scalar
from olx.needs import Need


class BallConstants(NamedTuple):
    """The constants of a loss as functions of its `hparams`, of b and of Y.

    smooth_fn, excess_fn: None for a loss that is not smooth.
    """

    lipschitz_fn: Callable[..., Array]
    smooth_fn: Callable[..., Array] | None = None
    excess_fn: Callable[..., Array] | None = None


@pytree
class ScoreLoss:
    """A loss of a real score; call it as `loss(score, outcome)`.

    lipschitz, self_bound: constants in the score; None if there is none, or none is known.
    start: a score that is in the domain of the loss for every outcome. The search for a conjugate
        begins there. A score at which the loss is not finite is outside the domain.
    value_fn: takes `hparams`, scores and outcomes, element by element. The other functions are
        optional; they are faster and more exact than the numerical search.
    value_and_slope_fn: the loss and its derivative, for a loss in which both need the same
        exponential or root; `jax.grad` would compute it twice.
    on_ball: constants for scores of bounded size; None if none are known.
    pull_fn: the dual variable of the proximal map, `(center - prox) / step`, without cancellation.
    of_classes: whether a score is a vector with one number per class. The conjugate of such a loss
        is not found numerically: give it.

    >>> import jax.numpy as jnp
    >>> log_cosh = ScoreLoss(value_fn=lambda _, s, y: jnp.log(jnp.cosh(s - y)))
    >>> round(float(log_cosh.prox(1.0, 2.0, 0.0)), 4), round(float(log_cosh.conjugate(0.5, 0.0)), 4)
    (1.1743, 0.1308)
    """

    hparams: PyTree = None
    lipschitz: Scalar | None = None
    self_bound: Scalar | None = None
    start: Scalar = 0.0
    value_fn: Callable[..., Array] = static(kw_only=True)  # (hparams, score, outcome)
    value_and_slope_fn: Callable[..., tuple[Array, Array]] | None = static(
        kw_only=True, default=None
    )  # (hparams, score, outcome)
    conjugate_fn: Callable[..., Array] | None = static(kw_only=True, default=None)
    # (hparams, tau, outcome)
    prox_fn: Callable[..., Array] | None = static(kw_only=True, default=None)
    # (hparams, step, center, outcome)
    pull_fn: Callable[..., Array] | None = static(kw_only=True, default=None)
    # (hparams, step, center, outcome)
    of_classes: bool = static(kw_only=True, default=False)
    needs: tuple[Need, ...] = static(kw_only=True, default=())  # its demands on outcomes
    on_ball: BallConstants | None = static(kw_only=True, default=None)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def __call__(self, score: ArrayLike, outcome: PyTree) -> Array:
        return self.value_fn(self.hparams, score, outcome)

    def value_and_slope(self, score: Array, outcome: PyTree) -> tuple[Array, Array]:
        r"""The loss of one score and its derivative $\ell'(s, y)$, shaped like the score."""
        if self.value_and_slope_fn is None:
            return jax.value_and_grad(Partial(of_score, self, outcome))(score)
        value, slope = self.value_and_slope_fn(self.hparams, score, outcome)
        return value, jnp.asarray(slope, jnp.result_type(score))

    @own_name("ScoreLoss.conjugate")
    def conjugate(self, tau: ArrayLike, outcome: PyTree) -> Array:
        r"""$\sup_s \tau s - \ell(s, y)$; infinite outside its domain."""
        if self.conjugate_fn is not None:
            return self.conjugate_fn(self.hparams, tau, outcome)
        check_convex(self)
        f = Partial(of_score, self, outcome)
        (tau,) = _alike(f, tau)
        return scalar.conjugate(f, tau, self.start)

    @own_name("ScoreLoss.prox")
    def prox(self, step: Scalar, center: Scalar, outcome: PyTree) -> Array:
        r"""$\arg\min_s$ `step` $\ell(s, y) + \tfrac12 (s - $ `center` $)^2$."""
        if self.prox_fn is not None:
            return self.prox_fn(self.hparams, step, center, outcome)
        if self.pull_fn is not None:
            moved = self.pull_fn(self.hparams, step, center, outcome)
            return center - (jnp.asarray(step)[..., None] if self.of_classes else step) * moved
        check_convex(self)
        f = Partial(of_score, self, outcome)
        step, center = _alike(f, step, center)
        return scalar.prox(f, step, center, self.start)

    def pull(self, step: Scalar, center: Scalar, outcome: PyTree) -> Array:
        r"""The $\tau$ with prox = `center` - `step` $\tau$; it is a slope of the loss there."""
        if self.pull_fn is not None:
            return self.pull_fn(self.hparams, step, center, outcome)
        return (center - self.prox(step, center, outcome)) / step


def check_convex(loss: ScoreLoss) -> None:
    """Refuse a loss that is not convex at some test scores; a traced loss is not tested."""
    if loss.of_classes:
        raise RefusedType(
            "this loss of classes has no conjugate or no proximal map; give it the "
            "`conjugate_fn` and the `pull_fn`, or play it with `olx.linear`, which needs neither."
        )
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(loss)):
        return
    for outcome in (-1.0, 1.0):
        with jax.ensure_compile_time_eval():
            scores = jnp.asarray(loss.start + np.linspace(-4.0, 4.0, 33), float)
            values = jnp.asarray(loss(scores, jnp.full_like(scores, outcome)))
            above, tried = np.asarray(above_line(values)), np.asarray(scores[1:-1])
        if np.max(above) > 0:
            raise RefusedValue(
                f"`loss` must be convex in the score; this one is not, near a score of "
                f"{tried[np.argmax(above)]:g} for the outcome {outcome:g}."
            )


def above_line(values: Array) -> Array:
    """How far values lie above the mean of their neighbours, beyond rounding."""
    left, middle, right = values[:-2], values[1:-1], values[2:]
    slack = 1e4 * jnp.finfo(values.dtype).eps * (1 + jnp.abs(left) + jnp.abs(right))
    above = middle - (left + right) / 2 - slack
    return jnp.where(jnp.isfinite(above), above, -jnp.inf)


def of_score(loss: ScoreLoss, outcome: PyTree, score: Array) -> Array:
    """The loss with its arguments in the order of a `Partial` that knows the outcome."""
    return loss(score, outcome)


def _alike(f: Partial, *numbers: ArrayLike) -> list[Array]:
    """`numbers` in the shape and dtype of the values of `f`."""
    like = jax.eval_shape(lambda f, *numbers: f(sum(numbers)), f, *numbers)
    return [jnp.broadcast_to(jnp.asarray(number, like.dtype), like.shape) for number in numbers]


def one_on_ball(_: PyTree, b: Array, top: Scalar) -> Array:
    """A constant that is 1 on every ball."""
    return 1.0 + 0 * b


def signs(owner: str) -> Need:
    """The need for labels of -1 and +1."""
    remedy = "map labels of 0 and 1 with 2 * y - 1"
    return Need("outcome", _are_signs, "labels must be -1 or +1", owner, remedy)


def _are_signs(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    labels = rounds.outcome  # to map a tree takes longer than to look at a few labels
    return _is_sign(labels) if hasattr(labels, "dtype") else jax.tree.map(_is_sign, labels)


def _is_sign(label: Array) -> Array:
    return label != label if label.dtype == bool else abs(label) == 1
