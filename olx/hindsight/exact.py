r"""The exact worst regret of a learner whose decisions are linear in the gradients, by PEPit.

Gradient descent and dual averaging, with fixed steps and no constraint, and their optimistic forms
play

$$w_t = w_1 + \sum_{s < t} H_{ts} g_s.$$

The regret on linear losses is then a linear function of the inner products of $u - w_1$ and the
gradients. So the worst regret is the value of a semidefinite program,

$$\max \; \sum_{t \le T} \langle g_t, w_t - u\rangle \quad \text{subject to} \quad
  \|g_t\| \le G, \quad \|u - w_1\| \le R,$$

exact in $T + 1$ dimensions or more, and an upper bound in fewer. It is also the worst regret over
all convex losses with subgradients of length at most $G$, as $\ell_t(w_t) - \ell_t(u) \le \langle
g_t, w_t - u\rangle$. $H$ is the derivative of the decisions that the learner itself plays.

PEPit is part of the extra `test`; olx does not need it otherwise.

Goujaud, Moucer, Glineur, Hendrickx, Taylor, Dieuleveut, PEPit: Computer-Assisted Worst-Case
Analyses of First-Order Optimization Methods in Python, 2024.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedImport, RefusedType, public
from olx.core import Learner, Rounds, Scalar
from olx.engine.arguments import check_game
from olx.engine.explain import errors_explained
from olx.engine.rollout import rollout
from olx.hindsight.worst_case import WorstCase
from olx.losses.points import linear_loss
from olx.record import actions
from olx.streams.checks import check_params
from olx.streams.stream import Stream

_LOOKS = 16  # random streams on which the decisions must be linear


@public
def exact_worst_case(
    learner: Learner, rounds: int, params: PyTree, *, gradient: Scalar, radius: Scalar
) -> WorstCase:
    r"""The largest regret on convex losses with gradients of length at most $G$.

    learner: a point learner; its decisions must be linear in the gradients, which is tested on
        random streams. For others see `worst_case`.
    params: where it starts; the result does not depend on the number of dimensions.
    gradient: $G$, the largest length of a gradient.
    radius: $R$, the largest distance of the comparator from the first decision.

    `regret` is an upper bound, by duality, up to the accuracy of the solver (about 1e-7). `stream`
    attains it: it has $T + 1$ dimensions, and starts from zeros.
    """
    check.count("rounds", rounds)
    check_game(learner, linear_loss)
    check_params(params)
    gradient = float(check.positive("gradient", gradient))
    radius = float(check.positive("radius", radius))
    response = _response(learner, rounds, params, gradient)
    pepit: Any = _pepit()
    problem = pepit.PEP()
    u, gradients = pepit.Point(), [pepit.Point() for _ in range(rounds)]
    problem.add_constraint(u**2 <= radius**2)
    for one in gradients:
        problem.add_constraint(one**2 <= gradient**2)
    regret: Any = 0.0
    for t, one in enumerate(gradients):
        moved = [float(response[t, s]) * gradients[s] for s in range(t)]
        regret = regret + one * (sum(moved, -u) if moved else -u)
    problem.set_performance_metric(regret)
    value = problem.solve(verbose=0, solver="CLARABEL")
    kind = jnp.result_type(*jax.tree.leaves(params))
    found = np.array([one.eval() for one in gradients])
    stream = Stream(Rounds(None, jnp.asarray(found, kind)), jnp.asarray(u.eval(), kind))
    value = jnp.asarray(value, kind)
    return WorstCase(value, stream, value[None])


def _response(
    learner: Learner, rounds: int, params: PyTree, gradient: float
) -> Float[np.ndarray, "T T"]:
    """H of the learner; refuses a learner whose decisions are not linear in the gradients."""
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, params))
    tests = _streams(rounds, flat.size).astype(flat.dtype) * gradient

    def decisions(gradients: Array) -> Array:
        game = Rounds(None, jax.vmap(unravel)(gradients))
        played = rollout(learner, linear_loss, game, params, record=actions).trace
        return jax.vmap(lambda w: ravel_pytree(w)[0])(played)

    first = Rounds(None, jax.vmap(unravel)(tests[0]))
    with errors_explained(learner, linear_loss, params, first):
        played = np.asarray(jax.jit(jax.vmap(decisions))(tests), float)
    slopes = np.asarray(jax.jit(jax.jacrev(decisions))(tests[0]), float)  # [T, d, T, d]
    response = np.einsum("tisi->ts", slopes) / flat.size
    moved = played - played[:1, :1]  # the first decision does not depend on the stream
    linear = np.einsum("ts,ksi->kti", response, np.asarray(tests, float))
    error = np.max(np.abs(moved - linear))
    if not error <= 256 * np.finfo(flat.dtype).eps * np.max(np.abs(played)):
        raise RefusedType(
            "the decisions of the learner must be linear in the gradients, got "
            f"decisions that differ by {error:.3g} from linear ones, as with a constraint, an "
            "entropy or an adaptive step. `olx.hindsight.worst_case` takes any learner."
        )
    return response


def _streams(rounds: int, width: int) -> np.ndarray:
    """Gradients of length 1: alike in all rounds, which goes far, or with signs, or random."""
    draw = np.random.default_rng(0)
    one, each = draw.normal(size=(_LOOKS, 1, width)), draw.normal(size=(_LOOKS, rounds, width))
    signs = draw.choice([-1.0, 1.0], (_LOOKS, rounds, 1))
    every = np.concatenate([np.broadcast_to(one, each.shape), one * signs, each])
    return every / np.linalg.norm(every, axis=-1, keepdims=True)


def _pepit() -> Any:
    try:
        return importlib.import_module("PEPit")
    except ImportError as error:
        raise RefusedImport(
            "PEPit is not installed; install it with `pip install pepit`, or search with "
            "`olx.hindsight.worst_case`."
        ) from error
