r"""A structured output: what scores it, decodes it and says what an error costs.

An output $y$ is made of parts, such as labels and pairs of neighbouring labels. The score is linear
in the weights $w$, through one score $p_j$ per part that may occur:

$$\langle w, \phi(x, y)\rangle = \sum_j p_j(w, x)\,[j \in y], \qquad
  \hat y = \arg\max_y \langle w, \phi(x, y)\rangle.$$

Learners play the scores of the parts. The feature map $\phi$ is never written: it is the gradient
of the score with respect to $w$. The cost $\rho(y, y') \ge 0$ of an output $y'$ for the truth $y$
has $\rho(y, y) = 0$. A mistake is an output with a positive cost.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._call import Call
from olx._compiled import compiled
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.core import Learner, Scalar
from olx.frameworks.lift import model
from olx.needs import Need

_BATCH = 256  # contexts that are decoded side by side


@pytree
class Structure:
    """Module-level functions of a structured output, and the numbers they share.

    Parts are a tree of real numbers. `chain` and `indexed_chain` make a structure. For another one,
    give the functions below; those that are None are derived or not available.

    zeros_fn: makes weights of 0.
    parts_fn: gives the scores of all parts; linear in the weights.
    score_fn: the score of one output, linear in the parts.
    decode_fn: the output of the highest score, in the shape of the outcomes.
    cost_fn: the cost of `output` for the truth `outcome`. It may read masks from `parts`.
    augment_fn: the parts with the cost of each added to its score, if the cost is a sum over parts.
    add_fn: adds to `w` the multiple of the gradient in `w`, at the cost of the active features.
    square_fn: the squared Euclidean norm of the gradient in `w`.
    """

    hparams: PyTree
    zeros_fn: Callable[..., PyTree] = static()  # (hparams, dtype) -> w
    parts_fn: Callable[..., PyTree] = static()  # (hparams, w, context) -> parts
    score_fn: Callable[..., Array] = static()  # (hparams, parts, output)
    decode_fn: Callable[..., PyTree] = static()  # (hparams, parts) -> output
    cost_fn: Callable[..., Array] = static()  # (hparams, parts, outcome, output)
    augment_fn: Callable[..., PyTree] | None = static(default=None)  # (hparams, parts, outcome)
    log_partition_fn: Callable[..., Array] | None = static(default=None)  # (hparams, parts)
    # (hparams, w, factor, context, slope) -> w
    add_fn: Callable[..., PyTree] | None = static(default=None)
    square_fn: Callable[..., Array] | None = static(default=None)  # (hparams, w, context, slope)
    needs: tuple[Need, ...] = static(default=())  # its demands on contexts and outcomes
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def zeros(self, dtype: DTypeLike = float) -> PyTree:
        """Weights of 0: the `params` of a game."""
        return self.zeros_fn(self.hparams, dtype)

    def parts(self, w: PyTree, context: PyTree) -> PyTree:
        return self.parts_fn(self.hparams, w, context)

    def score(self, parts: PyTree, output: PyTree) -> Float[Array, ""]:
        return self.score_fn(self.hparams, parts, output)

    def decode(self, parts: PyTree) -> PyTree:
        r"""The output of the highest score, $\arg\max_y \langle w, \phi(x, y)\rangle$."""
        return self.decode_fn(self.hparams, lax.stop_gradient(parts))

    @own_name("Structure")
    def cost(self, parts: PyTree, outcome: PyTree, output: PyTree) -> Float[Array, ""]:
        r"""$\rho(y, y')$; NaN if it is negative."""
        check.same_shape("the decoded output", output, "the outcome", outcome)
        cost = jnp.asarray(self.cost_fn(self.hparams, parts, outcome, output))
        return jnp.where(cost >= 0, cost, jnp.nan)

    @own_name("Structure")
    def worst(self, parts: PyTree, outcome: PyTree) -> PyTree:
        r"""The output that violates its margin most, $\arg\max_{y'} \rho(y, y') + \langle w,
        \phi(x, y')\rangle$."""
        if self.augment_fn is None:
            raise RefusedType(
                "the cost of this structure is not a sum over parts, so the output that violates "
                "its margin most is not known; use `prediction_loss`, which takes any cost."
            )
        return self.decode(self.augment_fn(self.hparams, parts, outcome))

    @own_name("Structure")
    def log_partition(self, parts: PyTree) -> Float[Array, ""]:
        r"""$\log \sum_y e^{\langle w, \phi(x, y)\rangle}$."""
        if self.log_partition_fn is None:
            raise RefusedType("this structure has no log-partition; use `max_loss`.")
        return self.log_partition_fn(self.hparams, parts)

    def marginals(self, parts: PyTree) -> PyTree:
        r"""The expected number of times that each part occurs, if $y$ has the probability
        $e^{\langle w, \phi(x, y)\rangle}$, normalized; it is the gradient of the log-partition."""
        return jax.grad(self.log_partition)(parts)

    def add(self, w: PyTree, factor: Scalar, context: PyTree, slope: PyTree) -> PyTree:
        r"""$w + $ `factor` $a$, with $a$ the gradient in $w$ if `slope` is that in the parts."""
        if self.add_fn is not None:
            return self.add_fn(self.hparams, w, factor, context, slope)
        return tree.add_scale(w, factor, self._pulled(w, context, slope))

    def square(self, w: PyTree, context: PyTree, slope: PyTree) -> Float[Array, ""]:
        r"""$\|a\|^2$ for the same $a$; only the shape of `w` is used."""
        if self.square_fn is not None:
            return self.square_fn(self.hparams, w, context, slope)
        a = self._pulled(w, context, slope)
        return jnp.asarray(tree.vdot(a, a))

    def kernel(self, w: PyTree, context: PyTree, slope: PyTree) -> PyTree:
        """How the scores of the parts change if the same $a$ is added to `w`."""
        move = lambda w: self.parts(w, context)
        return jax.jvp(move, (w,), (self._pulled(w, context, slope),))[1]

    def _pulled(self, w: PyTree, context: PyTree, slope: PyTree) -> PyTree:
        (a,) = jax.vjp(lambda w: self.parts(w, context), w)[1](slope)
        return a


@public
def decoded(structure: Structure, w: PyTree, contexts: PyTree) -> PyTree:
    """The outputs of many contexts: the leaves of `contexts` have a leading axis.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=1)
    >>> w = words.zeros()._replace(emission=jnp.array([[-1.0], [1.0]]))
    >>> x = jnp.array([[[1.0], [-1.0]], [[1.0], [0.0]]])
    >>> decoded(words, w, olx.structured.Sequences(x, jnp.array([2, 1]))).tolist()
    [[1, 0], [1, -1]]
    """
    check.instance("structure", structure, Structure)
    return _decode_each(structure, w, contexts)


@public
def structured_model(inner: Learner, structure: Structure) -> Learner:
    """Play the scores of the parts of a structured output with the decisions of `inner`.

    inner: a learner of points. With the loss `crf(structure)` it trains a conditional random field,
        with `max_loss(structure)` a structured support vector machine. It gets a gradient shaped
        like the weights, so a round of an `indexed_chain` costs the whole table here.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=3)
    >>> x, y = [jnp.eye(3), jnp.eye(3)[:2]], [[0, 1, 0], [0, 1]]
    >>> rounds = olx.structured.padded_rounds(x, y)
    >>> learner = structured_model(olx.meta.average(olx.ogd(0.5)), words)
    >>> run = olx.run(learner, olx.structured.crf(words), rounds, words.zeros())
    >>> [f"{loss:.3f}" for loss in run.losses]
    ['2.079', '0.787']
    """
    check.instance("inner", inner, Learner)
    check.instance("structure", structure, Structure)
    lifted = model(inner, Partial(_parts, structure))
    return dataclasses.replace(lifted, needs=(*lifted.needs, *structure.needs))


@compiled
def _decode_each(structure: Structure, w: PyTree, contexts: PyTree) -> PyTree:
    one = lambda context: structure.decode(structure.parts(w, context))
    return lax.map(one, contexts, batch_size=_BATCH)


def _parts(structure: Structure, w: PyTree, context: PyTree) -> PyTree:
    return structure.parts(w, context)
