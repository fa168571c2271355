r"""Regret to experts in hindsight: to each expert, and to quantiles of them.

The regret to expert $i$ after $t$ rounds is $R_{t,i} = \sum_{s \le t} I_{s,i} (\hat\ell_s -
\ell_{s,i})$. The regret to a mixture is $\langle u, R_t\rangle$, to the $\varepsilon$-quantile the
$\lceil \varepsilon N\rceil$-th largest $R_{t,i}$.

Luo, Optimal and Adaptive Online Learning, 2016, chapter 2.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _check as check
from olx.core import Learner, Run
from olx.experts.account import unit_of
from olx.experts.base import ExpertHparams, seen
from olx.experts.quantiles import rank_of
from olx.trace_checks import trace_of


def expert_regrets(learner: Learner, run: Run) -> Float[Array, "T N"]:
    """The regret of a run to every expert after every round, scaled by confidences and weights.

    run: a run of a learner of `olx.experts`, played with `record=olx.record.trace`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> learner = olx.experts.two_norm()
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(2), record=olx.record.trace
    ... )
    >>> expert_regrets(learner, run).round(2).tolist()
    [[-0.5, 0.5], [-0.5, 0.5]]
    """
    check.instance("expert_regrets", "learner", learner, Learner)
    if not isinstance(learner.hparams, ExpertHparams):
        raise TypeError(
            "expert_regrets: `learner` must be one of `olx.experts` that see all losses, got one "
            f"of `{learner.update_fn.__module__}`."
        )
    trace, hp = trace_of("expert_regrets", learner, run), learner.hparams
    regrets = jax.vmap(lambda state, feedback: seen(hp, state, feedback).regret)(*trace)
    return unit_of(hp) * jnp.cumsum(regrets, axis=0)


def quantile_regret(regrets: Float[Array, "T N"], epsilon: float) -> Float[Array, " T"]:
    r"""Regret to the $\lceil \varepsilon N\rceil$-th best expert, after every round.

    epsilon: above 0 and up to 1; 1/N or less gives the regret to the best expert.
    """
    check.array("quantile_regret", "regrets", regrets, 2)
    rank = rank_of("quantile_regret", regrets.shape[1], epsilon)
    return -jnp.sort(-regrets, axis=1)[:, rank - 1]
