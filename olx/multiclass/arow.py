r"""Multiclass AROW: adaptive regularization of weights with one matrix for all classes.

$$\hat y_{t,r} = \frac{\rho\, m_{t,r}}{\rho + \chi_t}, \qquad m_{t,r} = \langle w_{t,r},
  x_t\rangle, \quad \chi_t = x_t^\top A_{t-1}^{-1} x_t.$$

With $i$ the best class other than $y_t$, if $\hat y_{t,y_t} - \hat y_{t,i} < 1$ then

$$\theta_{y_t} \leftarrow \theta_{y_t} + x_t, \quad \theta_i \leftarrow \theta_i - x_t, \quad
  A_t = A_{t-1} + \frac{x_t x_t^\top}\rho, \qquad w_r = \tfrac12 A^{-1} \theta_r.$$

For two classes the difference of their weights is that of `olx.second_order.arow`. Every update
changes all rows of weights, because they share $A$.

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

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 3 and section 6.
"""

import jax.numpy as jnp
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import public_as
from olx.core import Feedback, Learner, Scalar
from olx.losses.margin import margin
from olx.multiclass._second_order import by_classes, comparator, difference, duel
from olx.second_order.arow import Tally, Terms, asks, first_tally, score, tally_sides, tally_terms
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    look,
    vector,
    weight_if,
)
from olx.theorem import summed


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
    return by_classes("multiclass.arow", Rule(r, score, step), (updates_made,))


def step(r: Scalar, row: Row, feedback: Feedback) -> Step:
    sides = difference(row, feedback)[1]
    return adding(row, r, sides / 2, weight_if(asks(duel(feedback)), feedback))


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return first_tally(hp.rule.hparams * jnp.sum(comparator(u, state.w) ** 2))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    x, r, seen = vector(feedback.context), hp.rule.hparams, duel(feedback)
    row = look(state, x)[0]
    along, total = comparator(u, state.w) @ x, r + row.spread
    ahead = difference(row, feedback)[0].margin
    rest = 4 * ahead / total - 4 * jnp.vdot(row.margin, row.margin) / (r * total)
    growth, published = 2 * row.spread / total, 2 * jnp.log1p(row.spread / r)
    grown = Terms(jnp.vdot(along, along), growth + rest, published + rest)
    return tally_terms(seen, margin(along, feedback.outcome), asks(seen), grown)


updates_made = summed("updates_made", "Orabona et al. 2015, lemma 3", terms, tally_sides, start)
