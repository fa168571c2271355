r"""Second-order learners whose matrix grows by a multiple of $x_t x_t^\top$ per round.

Such a learner keeps weights $w$ and the inverse $P = A^{-1}$ of a positive definite matrix. For a
row $x$ let $m = \langle w, x\rangle$ be its margin and $\chi = x^\top P x$ its spread, which is
large for rows in directions that were seldom seen. A rule is two functions of these two numbers,
the score to play and the step to take:

$$w \leftarrow w + a\, P x, \qquad P \leftarrow h\, (P - b\, P x x^\top P).$$

$A \leftarrow A + x x^\top / r$ is $b = 1 / (r + \chi)$. If also $\theta = A w$ grows by $z x$, then
$a = (r z - m) / (r + \chi)$.

The state holds a root of the inverse, $P = s\, S S^\top$ with a number $s$, and not $P$ itself. So
$P$ is symmetric and positive definite by construction, and single precision bears condition numbers
up to the square of what it would bear otherwise. With $\varphi = S^\top x$ the change of $P$ is

$$S \leftarrow S - k\, S \varphi \varphi^\top, \qquad k = \frac{b s}{1 + \sqrt{1 - b \chi}}, \qquad
  s \leftarrow h s,$$

because $(I - k \varphi \varphi^\top)^2 = I - b s\, \varphi \varphi^\top$. A round costs $O(d^2)$;
nothing is factorized. A large $s$ is multiplied into $S$ now and then.

More generally, if $M = H^{-1}$ becomes $M + s\, v v^\top$, the inverse $H = Q Q^\top$ is kept by
its root: with $\varphi = Q^\top v$, $n = |\varphi|^2$,

$$Q \leftarrow Q (I - k \varphi\varphi^\top), \qquad k = \frac{s}{1 + s n + \sqrt{1 + s n}}.$$

The change $q r^\top + r q^\top$ of the Gram matrix of a sketch is half of $u u^\top - v v^\top$
with $u = \beta q + r / \beta$ and $v = \beta q - r / \beta$. The number
$\beta = (|r|_H / |q|_H)^{1/2}$ makes $v$ smallest: it is 0 if $q$ and $r$ are parallel.

For classes, $w$ has one row per class, and $m$ and $a$ one number per class; $P$ is the same for
all classes.

Potter, Stern, Statistical Filtering of Space Navigation Measurements, 1963, for the root; Orabona,
Crammer, Cesa-Bianchi, 2015, section 6, for the rules.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, LeastSquares, Refresh
from olx.frameworks.lift import dot, transposed
from olx.needs import Need
from olx.theorem import Theorem


def changed_root(
    root: Float[Array, "m m"], q: Float[Array, " m"], r: Float[Array, " m"]
) -> Float[Array, "m m"]:
    r"""The root after $q r^\top + r q^\top$ is added to the matrix."""
    lengths = jnp.sum((r @ root) ** 2), jnp.sum((q @ root) ** 2)
    some = (lengths[0] > 0) & (lengths[1] > 0)
    beta = safe.divide(safe.or_one(lengths[0], some), safe.or_one(lengths[1], some)) ** 0.25
    root = _root_after(root, beta * q + r / beta, 0.5)
    return _root_after(root, beta * q - r / beta, -0.5)


def _root_after(root: Array, v: Array, s: float) -> Array:
    phi = v @ root
    ratio = jnp.maximum(1 + s * jnp.sum(phi**2), jnp.finfo(phi.dtype).eps)  # of determinants
    k = s / (ratio + jnp.sqrt(ratio))
    return root - jnp.multiply.outer(k * (root @ phi), phi)


class Step(NamedTuple):
    """The change after a round."""

    move: Array  # a
    shrink: Array  # b, at most 1 / spread
    kept: Array  # 1 - b * spread, computed without cancellation
    grow: Scalar = 1.0  # h


@pytree
class Rule:
    """A second-order rule: module-level functions and the hyperparameters they share."""

    hparams: PyTree
    score_fn: Callable[..., Array] = static()  # (hparams, margin, spread) -> score
    step_fn: Callable[..., Step] = static()  # (hparams, Row, feedback) -> Step

    def score(self, margin: Array, spread: Array) -> Array:
        return self.score_fn(self.hparams, margin, spread)

    def step(self, row: "Row", feedback: Feedback) -> Step:
        return self.step_fn(self.hparams, row, feedback)


class Row(NamedTuple):
    """What a rule sees of the row of a round."""

    margin: Array  # <w, x>; for classes one number each
    spread: Array  # x' P x
    number: Array  # the number of the round, from 1
    width: int  # the number of coordinates


@pytree
class RankOneHparams:
    rule: Rule
    prior: Scalar  # the first matrix is prior * I


class RankOneState(NamedTuple):
    w: Float[Array, "... d"]
    root: Float[Array, "d d"]  # S, with P = scale * S S'
    scale: Float[Array, ""]
    clock: Clock


@public
def rank_one(
    rule: Rule,
    prior: Scalar = 1.0,
    *,
    grows: bool = False,
    classes: bool = False,
    squares: LeastSquares | None = None,
    needs: tuple[Need, ...] = (),
    theorems: tuple[Theorem, ...] = (),
) -> Learner:
    r"""A predictor by a second-order rule, for rules of your own; see the pages of the package.

    prior: positive; the first matrix is $A_0$ = `prior` times the identity.
    grows: whether steps of the rule may have a `grow` above 1.
    classes: whether there is a row of weights per class. `params` is then such an array, and the
        rule gets and gives one margin, score and `move` per class.
    squares: the least squares problem of the rule, if there is one.
    needs, theorems: as in `olx.Learner`.

    The context is shaped like `params`: an array, or a tree of arrays, which is read as one vector.
    Only the shape of `params` is used: the first weights are 0.
    """
    check.instance("rule", rule, Rule)
    prior = check.positive("prior", prior)
    hparams = RankOneHparams(rule, prior)
    facts = Facts(refresh=Refresh(is_due, folded_state) if grows else None, squares=squares)
    begin = init_classes if classes else init
    return Learner(hparams, begin, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: RankOneHparams, params: PyTree) -> RankOneState:
    return _first_state(hp, jnp.zeros_like(vector(params)))


def init_classes(hp: RankOneHparams, params: Float[Array, "k ..."]) -> RankOneState:
    return _first_state(hp, jnp.zeros_like(params).reshape(params.shape[0], -1))


def _first_state(hp: RankOneHparams, w: Float[Array, "... d"]) -> RankOneState:
    root = jnp.eye(w.shape[-1], dtype=w.dtype) / jnp.sqrt(jnp.asarray(hp.prior, w.dtype))
    return RankOneState(w, root, jnp.ones((), w.dtype), clock.start(hp, w))


def predict(hp: RankOneHparams, state: RankOneState, context: PyTree) -> Array:
    row, _ = look(state, vector(context))
    return hp.rule.score(row.margin, row.spread)


def update(hp: RankOneHparams, state: RankOneState, feedback: Feedback) -> RankOneState:
    row, phi = look(state, vector(feedback.context))
    step, along = hp.rule.step(row, feedback), state.root @ phi
    k = step.shrink * state.scale / (1 + jnp.sqrt(step.kept))
    return RankOneState(
        state.w + transposed(step.move * state.scale, along),
        state.root - jnp.outer(k * along, phi),
        state.scale * step.grow,
        clock.tick(hp, state.clock, feedback),
    )


def is_due(hp: PyTree, state: RankOneState) -> Array:
    return state.scale > _LARGE


def folded_state(hp: PyTree, state: RankOneState, sums: None) -> RankOneState:
    """The same matrix with a scale of 1; its entries stay below the root of the largest float."""
    most = float(jnp.finfo(state.root.dtype).max) ** 0.25
    factor = jnp.minimum(jnp.sqrt(state.scale), jnp.maximum(most / jnp.max(jnp.abs(state.root)), 1))
    return state._replace(root=factor * state.root, scale=jnp.ones_like(state.scale))


_LARGE = 1e6


def look(state: RankOneState, x: Float[Array, " d"]) -> tuple[Row, Float[Array, " d"]]:
    r"""The row as the rule sees it, and $\varphi = S^\top x$."""
    phi = x @ state.root
    spread = state.scale * jnp.vdot(phi, phi)
    return Row(dot(state.w, x), spread, state.clock.now, x.size), phi


def row_and_score(state: RankOneState, feedback: Feedback, u: PyTree) -> tuple[Row, Array]:
    """The row of a round as the rule sees it, and the score of `u` on it."""
    x = vector(feedback.context)
    return look(state, x)[0], jnp.vdot(vector(u), x)


def weight_if(counts: Array, feedback: Feedback) -> Array:
    """The weight of a round that counts, else 0."""
    return jnp.where(counts, feedback.weight, 0.0)


def comparator(state: RankOneState, u: PyTree) -> Float[Array, " d"]:
    """The comparator of a theorem as one vector; refuses one of another size."""
    return check.comparator(vector(u), state.w)


def adding(row: Row, r: Scalar, z: Scalar, weight: Scalar = 1.0) -> Step:
    r"""The step of $A \leftarrow A + c\, x x^\top / r$ and $\theta \leftarrow \theta + c\, z x$.

    weight: $c$, the weight of the round or 0 to change nothing.
    """
    total = r + weight * row.spread
    return Step(weight * (r * z - row.margin) / total, weight / total, r / total)


def vector(tree: PyTree) -> Float[Array, " d"]:
    """A tree of arrays as one vector."""
    return tree if getattr(tree, "ndim", 0) == 1 else ravel_pytree(tree)[0]
