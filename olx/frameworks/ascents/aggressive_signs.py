r"""The locally optimal rule for the entropy, the hinge and rows of signs, in closed form.

With $z = y x \in \{-1, 0, 1\}^n$ and $P, N, O$ the total weight of the coordinates where $z$ is
$1, -1, 0$, the dual vector is $-\alpha z$ with

$$\beta = \frac{\gamma O + \sqrt{\gamma^2 O^2 + 4 (1 - \gamma^2) P N}}{2 (1 - \gamma) P}, \qquad
  \alpha = \min\{1, \max\{0, c \log \beta\}\}.$$

If $\gamma \ge 1$ or $P = 0$, no weights reach the margin and $\alpha = 1$. If $N = O = 0$, all
weight is on the correct side already and $\alpha = 0$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.2, where $P$
and $N$ are exchanged.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _numeric as safe
from olx._refusal import RefusedType, own_name, public
from olx.frameworks.ascents.base import Ascent, Problem, move, nothing
from olx.losses.hinges import hinge
from olx.mirrors.entropy import negative_entropy


@public
def aggressive_signs() -> Ascent:
    """The rule `aggressive` in closed form: `negative_entropy`, a hinge, rows of -1, 0 and 1 only.

    Other maps and losses are refused. On other rows the theorems do not apply.

    >>> import jax.numpy as jnp, olx
    >>> entropy, hinge = olx.mirrors.negative_entropy(), olx.losses.margin_hinge(0.5)
    >>> learner = olx.dual_ascent(1.0, entropy, hinge, aggressive_signs())
    >>> rounds = olx.Rounds(jnp.array([[1.0, -1.0]] * 2), jnp.ones(2))
    >>> olx.rollout(learner, hinge, rounds, jnp.zeros(2)).losses.round(6).tolist()
    [0.5, 0.0]
    """
    demand = "contexts must hold -1, 0 and 1 only, for `aggressive_signs`"
    return Ascent(None, nothing, step, separable=False, legal_fn=of_signs, demand=demand)


def step(hparams: None, memory: None, problem: Problem) -> tuple[PyTree, Array, None]:
    return *move(problem, -problem.y * _alpha(problem)), None


def of_signs(hparams: None, problem: Problem) -> Array:
    leaves = jax.tree.leaves(problem.x)
    return jnp.all(jnp.stack([jnp.all((x == 0) | (jnp.abs(x) == 1)) for x in leaves]))


@own_name("aggressive_signs")
def _alpha(problem: Problem) -> Array:
    mirror, y, c = problem.mirror, problem.y, problem.c
    entropy = mirror.conjugate.func is negative_entropy().conjugate.func
    if not entropy or problem.loss.value_fn is not hinge.value_fn:
        raise RefusedType(
            "the map must be `negative_entropy` and the loss a hinge; use `aggressive` for others."
        )
    assert mirror.modulus is not None  # every entropy states its modulus
    margin = problem.loss(jnp.zeros_like(problem.score), y)
    w = mirror.to_primal(jax.tree.map(lambda acc: acc / c, problem.acc))
    among = lambda side: jax.tree.map(lambda x: (y * x == side).astype(x.dtype), problem.x)
    plus, minus, off = (jnp.asarray(tree.vdot(w, among(side))) for side in (1, -1, 0))

    never = (margin >= 1) | (plus <= 0)
    already = (minus <= 0) & (off <= 0)
    easy = never | already
    margin, plus = jnp.where(never, 0.5, margin), jnp.where(never, 1.0, plus)
    off = jnp.where(easy, 1.0, off)
    root = jnp.sqrt((margin * off) ** 2 + 4 * (1 - margin**2) * plus * minus)
    beta = (margin * off + root) / (2 * (1 - margin) * plus)
    # The potential may be a multiple of the entropy; its modulus is the factor.
    rate = c * mirror.modulus / safe.or_one(problem.weight)
    alpha = jnp.clip(rate * jnp.log(beta), 0.0, 1.0)
    return jnp.where(never, 1.0, jnp.where(already, 0.0, alpha))
