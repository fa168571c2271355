r"""Scale-invariant AdaGrad for linear predictors.

Follow the regularized leader with `olx.regularizers.scale_invariant_adagrad`. Multiplying a feature
by a constant in all rounds changes no prediction. The regret bound depends on
$\sum_i (u_i b_{T,i})^2$, which does not change either. For rounds of weight 1 and losses
$L$-Lipschitz in the score,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \sum_i a_{t+1,i} \Big( \frac{\sqrt d (u_i
  b_{t,i})^2}{2\eta} + \frac{\eta}{\sqrt d} \Big) \le L \sqrt{d (t+1)} \Big( \frac{\sum_i (u_i
  b_{t,i})^2}{2\eta} + \eta \Big).$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, theorem 1.
"""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.first_order.scale_invariant_pnorm import Account, add_sides, both_sides, open_account
from olx.frameworks.ftrl import FTRLHparams, FTRLState, ftrl
from olx.regularizers.scale_invariant import adagrad_level
from olx.regularizers.scale_invariant import scale_invariant_adagrad as regularizer
from olx.theorem import Theorem


@public
def scale_invariant_adagrad(eta: Scalar, lipschitz: Scalar = 1.0) -> Learner:
    r"""AdaGrad in units of the features; it must be inside `olx.linear`.

    eta: positive; in hindsight $(\sum_i (u_i b_{T,i})^2 / 2)^{1/2}$ is best.
    lipschitz: $L$ of the loss in the score.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.linear(olx.first_order.scale_invariant_adagrad(1.0))
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    eta = check.positive("eta", eta)
    return ftrl(eta, regularizer(lipschitz)).carrying(scale_invariant_regret)


def add_round(
    hp: FTRLHparams, account: Account, state: FTRLState, feedback: Feedback, u: PyTree
) -> Account:
    after, own = hp.regularizer.update(state.stats, feedback), hp.regularizer.hparams
    d = sum(leaf.size for leaf in jax.tree.leaves(u))
    paid = jax.tree.map(lambda u, b: (u * b) ** 2 / (2 * hp.eta), u, after.largest)
    price = lambda a, paid: jnp.sum(a * (d**0.5 * paid + hp.eta / d**0.5))
    right = jnp.asarray(tree.sum(jax.tree.map(price, adagrad_level(own, after), paid)))
    t = account.regret.rounds.now
    worst = own.lipschitz * jnp.sqrt(d * (t + 1)) * (tree.sum(paid) + hp.eta)
    return add_sides(account, feedback, u, own.lipschitz, right, worst)


scale_invariant_regret = Theorem(
    "scale_invariant_regret",
    "Orabona et al. 2015, theorem 1 (13)",
    open_account,
    add_round,
    both_sides,
)
