r"""Weak duality on runs of `dual_ascent`: the dual that the learner raises is below every primal.

$$D_t = -c_t f^*\Big(-\frac1{c_t} \sum_i \lambda_i\Big) - \sum_i g_i^*(\lambda_i) \le
  P_t(u) = c_t f(u) + \sum_{s \le t} g_s(u).$$

$g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$ are the losses that the learner goes by, those that
count, and $f$ stands for $f - \min f$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 3.2, lemmas 1
and 2.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Learner, Run
from olx.frameworks.dual_ascent import Account, DualAscentHparams, account
from olx.hindsight.about import DUAL_ASCENT
from olx.hindsight.game import Game, judged, played


def weak_duality(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""$D_t \le c_t f(u) + \sum_{s \le t} g_s(u)$, with the dual vectors after round $t$."""
    game = played("weak_duality", DUAL_ASCENT, learner, run, u)
    entries = _account("weak_duality", learner, game)
    dual, size = _dual(learner.hparams, run, game, entries)
    proof = Certificate(dual, _primal(entries), size, theorem="Shalev-Shwartz 2007, weak duality")
    return judged(game, proof.given(DOMAIN, entries.conditions[DOMAIN]))


def sandwich(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Lemmas 1 and 2: the dual lies between the learner's loss, less what it pays for moving, and
    what any $u$ pays.

    $$\sum_{s \le t} g_s(w_s) - \sum_{s \le t} \frac{\|\lambda'_s\|_*^2}{2 c_s} \le D_t \le
      c_t f(u) + \sum_{s \le t} g_s(u),$$

    on the left the Bregman divergences of `olx.certify` in place of the norms. `right` is the dual,
    `printed` the primal.
    """
    game = played("sandwich", DUAL_ASCENT, learner, run, u)
    entries = _account("sandwich", learner, game)
    dual, size = _dual(learner.hparams, run, game, entries)
    left = jnp.cumsum(entries.loss - entries.drift - entries.change)
    proof = Certificate(left, dual, size, _primal(entries), "Shalev-Shwartz 2007, lemma 1")
    return judged(game, proof.under(entries.conditions))


def _account(owner: str, learner: Learner, game: Game) -> Account:
    acc = jax.tree.map(lambda leaf: leaf[0], game.trace.state.acc)
    return account(learner.hparams, game.trace, check.comparator(owner, game.u, acc))


def _primal(entries: Account) -> Array:
    return entries.paid + jnp.cumsum(entries.other)


def _dual(hp: DualAscentHparams, run: Run, game: Game, entries: Account) -> tuple[Array, Array]:
    """The dual after every round, and the size of the numbers in either side."""
    later = lambda before, last: jnp.concatenate([before[1:], last[None]])[game.order]
    before, last = run.trace.state, run.state
    acc = jax.tree.map(later, before.acc, last.acc)
    conjugates = later(before.conjugates, last.conjugates)
    f = hp.mirror.conjugate

    def value(c: Array, acc: PyTree) -> Array:
        return -c * (f(jax.tree.map(lambda leaf: leaf / c, acc)) - f(tree.zeros_like(acc)))

    risen = jax.vmap(value)(entries.c, acc)
    paid = jnp.where(jnp.isfinite(entries.paid), jnp.abs(entries.paid), 0.0)
    size = jnp.abs(risen) + jnp.abs(conjugates) + paid + jnp.cumsum(entries.size)
    return risen - conjugates, size
