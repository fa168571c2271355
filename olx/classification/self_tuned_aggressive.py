r"""The aggressive classifier with an automatic step size, set by the number of mistakes.

$$w_t = \nabla f^*\Big(\frac{1}{c_t} \sum_{s < t} \alpha_s y_s x_s\Big), \qquad
  c_t = X_t \sqrt{\frac{m_t + 1}{U}}, \qquad X_t = \max_{s \le t} \|x_s\|_*,$$

with $m_t$ the number of mistakes before round $t$. In every round $\alpha_t \in [0, 1]$ maximizes
the dual of the hinge with margin $\gamma$; it is 0 if the loss is 0. For every $u$ with $f(u) \le
U$, with $X$ the largest $\|x_s\|_*$ and $G$ the sum of the hinge losses of $u$, both over all
rounds, the number of mistakes is at most

$$\frac G\gamma + \frac{2 X}{\gamma^{3/2}} \sqrt{U G} + \frac{4 X^2 U}{\gamma^2}.$$

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 5.3 with its
signs and norm corrected, theorem 6.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType, public
from olx.convex.norms import Norm
from olx.core import Learner, Scalar
from olx.frameworks.ascents.optimal import aggressive
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import Tally, add_round, alike, open_tally, self_tuned
from olx.frameworks.primal_dual import DualAscentHparams, DualAscentState
from olx.losses.hinges import margin_hinge
from olx.mirrors.base import MirrorMap
from olx.schedules.mistakes import mistakes
from olx.theorem import About, Certificate, Theorem


@public
def self_tuned_aggressive(mirror: MirrorMap, complexity: Scalar, margin: Scalar = 1.0) -> Learner:
    r"""Learn from every margin error, with a step size set by the number of mistakes.

    mirror: strongly convex in a norm that it states, with minimum 0.
    complexity: $U$, the largest $f(u)$ to compete with; $\log d$ for the entropy.
    margin: $\gamma$; below 1 for the entropy and rows in $[-1, 1]^d$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> learner = self_tuned_aggressive(olx.mirrors.euclidean(), complexity=12.5)
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.2).holds)
    True
    """
    check.instance("mirror", mirror, MirrorMap)
    complexity = check.positive("complexity", complexity)
    margin = check.positive("margin", margin)
    if mirror.norm is None or mirror.modulus is None:
        raise RefusedType(
            "`mirror` must state its norm and modulus, which set the step "
            "size; give them to `olx.mirror_map`."
        )
    root = jnp.sqrt(mirror.modulus)  # the schedule is for a modulus of 1
    norm = Norm(
        Partial(_scaled, root, mirror.norm.primal), Partial(_scaled, 1 / root, mirror.norm.dual)
    )
    schedule = mistakes(complexity, norm)
    learner = dual_ascent(schedule, mirror, margin_hinge(margin), aggressive())
    return learner.carrying(self_tuned_aggressive_mistakes)


def open_account(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Tally:
    return open_tally(hp.loss.hparams, hp, state, u, every=True)


def both_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    return self_tuned(tally, hp.eta.hparams.complexity)


def _is_self_tuned(learner: Learner) -> bool:
    hp = learner.hparams
    if not isinstance(hp, DualAscentHparams) or not hp.mirror.states_norm:
        return False
    return alike(hp, self_tuned_aggressive(hp.mirror, 1.0).hparams)


self_tuned_aggressive_mistakes = Theorem(
    "self_tuned_aggressive_mistakes",
    "Shalev-Shwartz 2007, theorem 6",
    open_account,
    add_round,
    both_sides,
    about=About("`self_tuned_aggressive`", _is_self_tuned),
)


def _scaled(factor, norm, x):
    return factor * norm(x)
