r"""Losses of the scores of parts, for any structure.

With $a_{y'} = \phi(x, y) - \phi(x, y')$ and the decoded $\hat y$:

- max loss: $\max_{y'} \rho(y, y') - \langle w, a_{y'}\rangle$, never negative as $y' = y$ gives 0;
- prediction-based loss: $\max(0, \rho(y, \hat y) - \langle w, a_{\hat y}\rangle)$, for any cost;
- conditional random field: $\log \sum_{y'} e^{\langle w, \phi(x, y')\rangle} - \langle w, \phi(x,
  y)\rangle$;
- decoded cost: $\rho(y, \hat y)$; its slope is 0.

Both margin losses are at least $\rho(y, \hat y)$. The first and the third are convex in $w$; the
second is a hinge once $\hat y$ is fixed.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (5.22) and (5.24);
Lafferty, McCallum, Pereira, Conditional Random Fields, 2001.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import RefusedType, public
from olx.needs import Need
from olx.structured.structure import Structure


@pytree
class PartsLoss:
    """A loss of the scores of parts; call it as `loss(parts, outcome)`."""

    structure: Structure
    value_fn: Callable[..., Array] = static()  # (loss, parts, outcome)
    rival_fn: Callable[..., PyTree] | None = static(default=None)  # (structure, parts, outcome)
    needs: tuple[Need, ...] = static(default=())
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def __call__(self, parts: PyTree, outcome: PyTree) -> Array:
        return self.value_fn(self, parts, outcome)


class Contrast(NamedTuple):
    """The truth against another output."""

    cost: Float[Array, ""]  # rho(y, y')
    margin: Float[Array, ""]  # <w, a>, the score of the truth minus that of the other
    slope: PyTree  # the gradient of the margin in the parts; a is its gradient in w

    @property
    def wrong(self) -> Bool[Array, ""]:
        """Whether the other output is a mistake: it has a positive cost."""
        return self.cost > 0

    @property
    def hinge(self) -> Float[Array, ""]:
        gap = self.cost - self.margin
        return jnp.where(gap <= 0, 0.0, gap)


@public
def max_loss(structure: Structure) -> PartsLoss:
    """The margin loss of the output that violates its margin most.

    The cost must be a sum over parts, as the Hamming cost is.
    """
    check.instance("structure", structure, Structure)
    if structure.augment_fn is None:
        raise RefusedType(
            "the cost of `structure` is not a sum over parts; use `prediction_loss`, "
            "which takes any cost."
        )
    return PartsLoss(structure, _hinge, _worst, structure.needs)


@public
def prediction_loss(structure: Structure) -> PartsLoss:
    """The margin loss of the decoded output."""
    check.instance("structure", structure, Structure)
    return PartsLoss(structure, _hinge, predicted, structure.needs)


@public
def crf(structure: Structure) -> PartsLoss:
    """The negative log-likelihood of a conditional random field."""
    check.instance("structure", structure, Structure)
    if structure.log_partition_fn is None:
        raise RefusedType("`structure` has no log-partition; use `max_loss`.")
    return PartsLoss(structure, _crf, None, structure.needs)


@public
def decoded_cost(structure: Structure) -> PartsLoss:
    """The cost of the decoded output: the number of wrong labels, for the Hamming cost."""
    check.instance("structure", structure, Structure)
    return PartsLoss(structure, _decoded, None, structure.needs)


def contrast(structure: Structure, parts: PyTree, outcome: PyTree, output: PyTree) -> Contrast:
    cost = structure.cost(parts, outcome, output)
    apart = lambda parts: structure.score(parts, outcome) - structure.score(parts, output)
    return Contrast(cost, *jax.value_and_grad(apart)(parts))


def predicted(structure: Structure, parts: PyTree, outcome: PyTree) -> PyTree:
    """The decoded output, whatever the truth."""
    return structure.decode(parts)


def _worst(structure: Structure, parts: PyTree, outcome: PyTree) -> PyTree:
    return structure.worst(parts, outcome)


def _hinge(loss: PartsLoss, parts: PyTree, outcome: PyTree) -> Array:
    assert loss.rival_fn is not None  # the factories of margin losses give one
    rival = loss.rival_fn(loss.structure, parts, outcome)
    return contrast(loss.structure, parts, outcome, rival).hinge


def _crf(loss: PartsLoss, parts: PyTree, outcome: PyTree) -> Array:
    return loss.structure.log_partition(parts) - loss.structure.score(parts, outcome)


def _decoded(loss: PartsLoss, parts: PyTree, outcome: PyTree) -> Array:
    return loss.structure.cost(parts, outcome, loss.structure.decode(parts))
