r"""Second-order learners of classes: AROW with one matrix or with variances, confidence-weighted.

With $i$ the best class other than $y_t$, the rival, these learners play the difference of the label
and its rival. The weights have one row per class. In the first two learners below all rows share
the matrix $P$ of `olx.second_order.rank_one`. A rule that adds $a P x_t$ to binary weights adds
$\frac a2 P x_t$ to $w_{y_t}$ and takes it from $w_i$: so $w_{y_t} - w_i$ moves as the binary
weights would. In other words, the Gaussian over each row of weights has the covariance $\frac12 P$,
so that a difference of two rows has $P$. For two classes it is the binary learner on the difference
of their weights.

`soft_confidence_weighted` changes the difference as `olx.second_order.soft_confidence_weighted`
does: as little as possible, such that the label beats its rival with a probability of at least
$\Phi(\phi)$, or at a price. No bound is known that a run could be checked against.

`arow` has $P = A^{-1}$ and the scores

$$\hat y_{t,r} = \frac{\rho\, m_{t,r}}{\rho + \chi_t}, \qquad m_{t,r} = \langle w_{t,r},
  x_t\rangle, \quad \chi_t = x_t^\top A_{t-1}^{-1} x_t.$$

If $\hat y_{t,y_t} - \hat y_{t,i} < 1$ then

$$\theta_{y_t} \leftarrow \theta_{y_t} + x_t, \quad \theta_i \leftarrow \theta_i - x_t, \quad
  A_t = A_{t-1} + \frac{x_t x_t^\top}\rho, \qquad w_r = \tfrac12 A^{-1} \theta_r.$$

Every update changes all rows of weights, because they share $A$.

It is mirror descent with $f_t(W) = \sum_r w_r^\top A_t w_r$. So with $M$ the mistakes, $V$ the
other rounds with an update and $H$ the sum of the multiclass hinge losses of $U$ over $M \cup V$,
for every $U$ and rounds of weight 1

$$|M| + |V| \le H + \sqrt{\rho \|U\|_F^2 + \sum_{s \in M \cup V} \|U x_s\|^2} \sqrt{\sum_{s \in M
  \cup V} \frac{2 \chi_s + 4 (m_{s,y_s} - m_{s,i})}{\rho + \chi_s} - \frac{4 \|m_s\|^2}{\rho (\rho
  + \chi_s)}}.$$

`published` has $2 \ln(1 + \chi_s / \rho)$ in place of $2 \chi_s / (\rho + \chi_s)$, whose sum is $2
\ln \det A_t$.

Proof: lemma 3 of the paper bounds $|M| + |V|$ by $H + 2 \sqrt{f_t(U)}$ times the root of $\sum_s
f_s^*(\theta_s) - f_{s-1}^*(\theta_s) + \frac12 \|a_s\|_{s,*}^2 + \langle W_s, a_s\rangle$, with
$a_s$ the matrix of $x_s$ and $-x_s$ that is added. Here $f^*(\theta) = \frac14 \sum_r \theta_r^\top
A^{-1} \theta_r$, so the difference is $-\|m_s\|^2 / (\rho + \chi_s)$, the norm is $\chi_s \rho /
(\rho + \chi_s)$ and the product is the lead of the label.

`diagonal_arow` has a variance for every weight of every class, $O(k d)$ per round. The weights of a
class are Gaussian with the means $w_r$ and the variances $\frac1{2 D_{r,j}}$, $D_0 = 1$. With
$\ell_t = 1 - \langle w_{y_t} - w_i, x_t\rangle$, if $\ell_t > 0$ then

$$w_{y_t} \leftarrow w_{y_t} + \alpha_t \frac{x_t}{2 D_{y_t}}, \quad w_i \leftarrow w_i - \alpha_t
  \frac{x_t}{2 D_i}, \qquad \alpha_t = \frac{\ell_t}{\chi_t + \rho}, \quad \chi_t = \sum_j
  \frac{x_{t,j}^2}{2 D_{y_t,j}} + \frac{x_{t,j}^2}{2 D_{i,j}},$$

and $D_r \leftarrow D_r + x_t^2 / \rho$ for $r = y_t$ and $r = i$. $\chi_t$ is the variance of the
difference of the two scores. A round changes two classes, and these become certain about the
features of the row. For two classes the difference of their weights is that of the binary AROW of
Crammer et al. with a diagonal matrix. A round of weight $h$ has $\rho / h$ in place of $\rho$.

The bound of the paper is about the full matrix. No bound for the diagonal one is known that a run
could be checked against.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 3 and section 6; Crammer, Kulesza, Dredze, Adaptive
Regularization of Weight Vectors, 2009, for the binary rule; Crammer, Dredze, Kulesza, Multi-Class
Confidence Weighted Algorithms, 2009, for the update of one rival and a variance for every weight;
Wang, Zhao, Hoi, Exact Soft Confidence-Weighted Learning, 2012.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public_as
from olx._words import computed
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot
from olx.losses.classes import class_rows, labels
from olx.losses.margin import hot, margin, pick, rival
from olx.second_order.arow import Tally, Terms, asks, first_tally, score, tally_sides, tally_terms
from olx.second_order.confidence_weighted import confidence_of, soft_rule
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    look,
    rank_one,
    vector,
    weight_if,
)
from olx.theorem import Theorem, summed


@public_as("multiclass.arow")
def arow(r: Scalar) -> Learner:
    r"""Multiclass AROW with a full matrix, a predictor for labels 0, ..., k - 1.

    r: the $\rho$ above, positive; larger for more noise. It means what it means in
        `olx.second_order.arow`.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.1)
    >>> learner, loss = arow(1.0), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)), record=olx.record.trace)
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    r = check.positive("r", r)
    return _by_classes("multiclass.arow", Rule(r, score, arow_step), (updates_made,))


def arow_step(r: Scalar, row: Row, feedback: Feedback) -> Step:
    asked = weight_if(asks(_duel(feedback)), feedback)
    return adding(row, r, _sides(row.margin, feedback) / 2, asked)


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return first_tally(hp.rule.hparams * jnp.sum(_comparator(u, state.w) ** 2))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    x, r, seen = vector(feedback.context), hp.rule.hparams, _duel(feedback)
    row = look(state, x)[0]
    along, total = _comparator(u, state.w) @ x, r + row.spread
    ahead = _lead(row.margin, feedback)
    rest = 4 * ahead / total - 4 * jnp.vdot(row.margin, row.margin) / (r * total)
    growth, published = 2 * row.spread / total, 2 * jnp.log1p(row.spread / r)
    grown = Terms(jnp.vdot(along, along), growth + rest, published + rest)
    return tally_terms(seen, margin(along, feedback.outcome), asks(seen), grown)


updates_made = summed("updates_made", "Orabona et al. 2015, lemma 3", terms, tally_sides, start)


@pytree
class DiagonalAROWHparams:
    r: Scalar


class DiagonalAROWState(NamedTuple):
    w: Float[Array, "k *d"]
    d: Float[Array, "k *d"]  # D


@public_as("multiclass.diagonal_arow")
def diagonal_arow(r: Scalar) -> Learner:
    r"""Multiclass AROW with variances, a predictor for labels 0, ..., k - 1.

    r: the $\rho$ above, positive; larger for more noise. For rows of length 1, 0.1 is a good start.

    `params` is an array with one row per class; only its shape is used. Sparse rows are supported.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.1)
    >>> learner, loss = diagonal_arow(0.1), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    owner = "multiclass.diagonal_arow"
    hparams = DiagonalAROWHparams(check.positive("r", r))
    facts, needs = Facts(coordinates=Rowwise()), (labels(owner), class_rows(owner))
    return Learner(
        hparams, diagonal_init, diagonal_predict, diagonal_update, facts=facts, needs=needs
    )


def diagonal_init(hp: DiagonalAROWHparams, params: PyTree) -> DiagonalAROWState:
    return DiagonalAROWState(jnp.zeros_like(params), jnp.ones_like(params))


def diagonal_predict(hp: DiagonalAROWHparams, state: DiagonalAROWState, context: PyTree) -> Array:
    return dot(state.w, context)


def diagonal_update(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback
) -> DiagonalAROWState:
    x, scores = feedback.context, feedback.action
    short, sides = 1 - _lead(scores, feedback), _sides(scores, feedback)
    weight = jnp.where(short > 0, jnp.asarray(feedback.weight, scores.dtype), 0.0)
    spread = jnp.vdot(jnp.abs(sides), dot(0.5 / state.d, x * x))
    step = _rows(sides * (short * weight / (weight * spread + hp.r)), x)
    grown = _rows(jnp.abs(sides) * (weight / hp.r), x)
    return DiagonalAROWState(state.w + step * x * (0.5 / state.d), state.d + grown * x * x)


def _rows(each: Array, x: Array) -> Array:
    """One number per class, in a shape that broadcasts to the weights."""
    return each.reshape(-1, *(1,) * jnp.ndim(x))


@public_as("multiclass.soft_confidence_weighted")
def soft_confidence_weighted(
    confidence: Scalar = 0.9, aggressiveness: Scalar = 1.0, *, squared: bool = False
) -> Learner:
    r"""Multiclass SCW-I, or SCW-II if `squared`, a predictor for labels 0, ..., k - 1.

    confidence: $\Phi(\phi)$ in (0.5, 1).
    aggressiveness: the $C$ of the paper, positive; smaller for more noise. It is multiplied by the
        weight of the round.
    squared: whether the price is `aggressiveness` times the square of the miss; else times the
        miss.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.1)
    >>> learner, loss = soft_confidence_weighted(), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    binary = soft_rule(confidence, aggressiveness, squared)
    rule = Rule(binary, binary_score, binary_step)
    learner = _by_classes("multiclass.soft_confidence_weighted", rule)
    return computed(learner, confidence=_confidence)


def _confidence(learner: Learner) -> Array:
    return confidence_of(learner.hparams.rule.hparams)


def binary_score(rule: Rule, margin: Array, spread: Array) -> Array:
    return rule.score(margin, spread)


def binary_step(rule: Rule, row: Row, feedback: Feedback) -> Step:
    """The step of a binary `rule` on the difference, one half for each of the two classes."""
    between = row._replace(margin=_lead(row.margin, feedback))
    binary = rule.step(between, _duel(feedback))
    return binary._replace(move=_sides(row.margin, feedback) * binary.move / 2)


def _by_classes(owner: str, rule: Rule, theorems: tuple[Theorem, ...] = ()) -> Learner:
    """A rule that takes and gives one number per class as a predictor of classes."""
    needs = (labels(owner), class_rows(owner))
    return rank_one(rule, classes=True, needs=needs, theorems=theorems)


def _pair(feedback: Feedback) -> tuple[Array, Array]:
    """Where the label is, and where the rival of the scores played."""
    own = hot(feedback.action, feedback.outcome)
    return own, rival(feedback.action, own)


def _lead(values: Array, feedback: Feedback) -> Array:
    """The value of the label minus that of its rival."""
    own, other = _pair(feedback)
    return pick(own, values) - pick(other, values)


def _sides(like: Array, feedback: Feedback) -> Array:
    """+1 at the label and -1 at its rival."""
    own, other = _pair(feedback)
    return jnp.where(own, 1.0, jnp.where(other, -1.0, jnp.zeros_like(like)))


def _duel(feedback: Feedback) -> Feedback:
    """The feedback of a binary learner whose label is +1."""
    ahead = _lead(feedback.action, feedback)
    return feedback._replace(action=ahead, outcome=jnp.ones_like(ahead))


def _comparator(u: PyTree, w: Array) -> Array:
    """The comparator as a matrix with a row per class."""
    return jnp.asarray(u, w.dtype).reshape(w.shape)
