r"""A sequence layer whose fast weights are an online learner.

Token $t$ has a key $k_t$, a value $v_t$ and a query $q_t$. The learner keeps a matrix $W$, plays a
round with the context $k_t$ and the outcome $v_t$, and the output is its prediction for the query
after that round:

$$o_t = W_t q_t, \qquad W_t = \text{update}(W_{t-1}; \ell_t), \qquad
  \ell_t(W) = \tfrac12 \|W k_t - v_t\|^2.$$

Gradient descent gives the delta rule, implicit steps give Longhorn, ridge regression gives the Mesa
layer, gradient descent on $-\langle v_t, W k_t\rangle$ gives linear attention, and every other
learner a layer of its own. Three forms give the same numbers up to rounding; what the learner says
of itself (`olx.facts`) and the loss decide which is played:

- chunks of tokens by matrix products, if the learner adds a multiple of the key that is affine in
  its prediction (`olx.layers.delta`), or if it keeps a least squares solution
  (`olx.layers.least_squares`);
- token after token otherwise; the backward pass keeps the state after every segment of about
  $\sqrt T$ tokens and computes the others again.

Schlag, Irie, Schmidhuber, Linear Transformers Are Secretly Fast Weight Programmers, 2021; Liu et
al., Longhorn: State Space Models are Amortized Online Learners, 2024.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters.partial_eval import dce_jaxpr
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._call import Call
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, public, public_methods
from olx.core import Learner, Loss, Scalar
from olx.engine.arguments import check_game, check_state
from olx.engine.game import first_state
from olx.engine.rollout import in_segments
from olx.engine.round import feedback_of
from olx.facts import AddsContext, ShrinksAndAddsContext
from olx.layers import delta, least_squares
from olx.layers.affine import is_affine
from olx.layers.numbers import Numbers, check_numbers, with_numbers
from olx.layers.rows import matrix_predictor
from olx.losses.residual import squared
from olx.losses.score import ScoreLoss


class Tokens(NamedTuple):
    """The tokens of a sequence; every leaf has a leading axis of tokens."""

    key: Float[Array, "T dk"]
    value: Float[Array, "T dv"]
    query: Float[Array, "T dk"]
    weight: Float[Array, " T"]
    numbers: Numbers


@public_methods
@pytree
class FastWeights:
    """A layer; call it as `layer(keys, values, queries)`. Its numbers are leaves, as of a learner.

    learner: as it was given.
    loss: of a round, a function of the prediction $W k$ and the value; `olx.certify` takes it.
    """

    learner: Learner
    loss: Any
    own_loss: Any  # as it was given
    name: Call = static(kw_only=True, default=Call())

    def __call__(
        self,
        keys: Float[Array, "T dk"],
        values: Float[Array, "T dv"],
        queries: Float[Array, "T dk"],
        *,
        state: PyTree = None,
        numbers: Numbers | None = None,
        weights: Float[Array, " T"] | None = None,
    ) -> tuple[Float[Array, "T dv"], PyTree]:
        """The outputs of a sequence, and the state after it.

        state: where to go on, from an earlier call or `step`; zeros if None. See `init`.
        numbers: numbers of the learner for each token, by name, such as `{"eta": etas}` with `etas`
            of shape (T,). Their range is yours to keep: no check sees numbers of a network.
        weights: the importance of each token; 0 changes nothing, as for padding. 1 if None.

        Batches and heads are axes of `jax.vmap`.
        """
        state, tokens = _sequence(self, (keys, values, queries), state, numbers, weights)
        state, outputs = _FORMS[self.form(_zeros(tokens))](self, state, tokens)
        return outputs, state

    def step(
        self,
        key: Float[Array, " dk"],
        value: Float[Array, " dv"],
        query: Float[Array, " dk"],
        *,
        state: PyTree = None,
        numbers: Numbers | None = None,
        weight: Scalar | None = None,
    ) -> tuple[Float[Array, " dv"], PyTree]:
        """The output of one token and the next state, for decoding; arguments without an axis T."""
        each = lambda leaf: jnp.asarray(leaf)[None]
        rows, *rest = jax.tree.map(each, ((key, value, query), numbers, weight))
        state, tokens = _sequence(self, rows, state, *rest)
        state, output = _round(self, state, jax.tree.map(lambda leaf: leaf[0], tokens))
        return output, state

    def init(self, params: Float[Array, "dv dk"]) -> PyTree:
        """The state that begins at the matrix `params`."""
        return first_state(self.predictor(params), params)

    def predictor(self, params: Float[Array, "dv dk"]) -> Learner:
        """The learner that the layer plays: keys are contexts, values outcomes, `params` a matrix.

        With constant numbers, `olx.rollout` and `olx.certify` of it and `layer.loss` on
        `olx.Rounds(keys, values)` play the rounds of the layer.
        """
        check.array("params", params, 2)
        return matrix_predictor(self.learner, self.own_loss, params)

    def form(self, params: Float[Array, "dv dk"]) -> str:
        """How sequences are played from `params`: "delta", "least squares" or "scan".

        What the learner states decides, and whether its multiple of the key is affine in the score.
        """
        predictor = self.predictor(params)
        adds = predictor.facts.adds
        if predictor.facts.squares is not None:
            return "least squares"
        if not isinstance(adds, AddsContext | ShrinksAndAddsContext):
            return "scan"
        state = jax.eval_shape(predictor.init, params)
        shapes = [leaf.shape for leaf in jax.tree.leaves(state)]
        if getattr(adds, "score_fn", None) is not None or shapes != [params.shape]:
            return "scan"
        key, value = params[0], params[:, 0]
        token = Tokens(key, value, key, jnp.ones_like(value[0]), {})
        multiple = lambda score, layer, token: _multiple(layer, token, score)
        return "delta" if is_affine(multiple, value, self, token) else "scan"


@public
def fast_weights(learner: Learner, loss: Loss = squared) -> FastWeights:
    r"""A layer of fast weights that `learner` changes, token by token.

    learner: a point learner or a predictor. It decides on matrices, or on vectors, and is then
        played for each row of the matrix.
    loss: of $W k$ and the value: one of `olx.losses` of a real score, summed over the entries, or a
        function of both vectors. `olx.losses.aligned` with `olx.ogd` gives linear attention.

    >>> import jax, jax.numpy as jnp, olx
    >>> keys, values = jnp.eye(3)[jnp.array([0, 1, 0])], jnp.arange(6.0).reshape(3, 2)
    >>> layer = olx.layers.fast_weights(olx.ogd(eta=1.0))
    >>> outputs, state = layer(keys, values, keys)
    >>> outputs.tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    >>> outputs, state = layer(keys, values, keys, numbers={"eta": jnp.array([1.0, 0.5, 0.0])})
    >>> outputs.tolist()
    [[0.0, 1.0], [1.0, 1.5], [0.0, 1.0]]
    """
    check_game(learner, loss)
    for need in (*learner.needs, *getattr(loss, "needs", ())):
        if need.where == "outcome":
            raise RefusedValue(
                f"{need.owner}: {need.demand}, but the values of a layer are any real vectors; "
                "take a learner and a loss of regression."
            )
    if isinstance(loss, ScoreLoss) and loss.of_classes:
        raise RefusedType("`loss` is a loss of classes; the values of a layer are real vectors.")
    return FastWeights(learner, Partial(_total, as_tree(loss)), as_tree(loss))


def _sequence(
    layer: FastWeights, rows: tuple[Any, ...], state: PyTree, numbers: Numbers | None, weights: Any
) -> tuple[PyTree, Tokens]:
    """The state and the tokens, in one dtype; refuses other shapes."""
    keys, values, queries = map(jnp.asarray, rows)
    for name, each in (("keys", keys), ("values", values), ("queries", queries)):
        if each.ndim != 2 or not each.shape[0]:
            raise RefusedType(
                f"`{name}` has shape {each.shape}; a layer takes one row per token, (T, d), and "
                "batches and heads by `jax.vmap`."
            )
    if keys.shape != queries.shape or len(keys) != len(values):
        raise RefusedType(
            f"keys, values and queries have shapes {keys.shape}, {values.shape} and "
            f"{queries.shape}; there must be one of each per token, and queries are like keys."
        )
    dtype, lead = jnp.result_type(keys, values, queries), keys.shape[:1]
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    if weights is not None and np.shape(weights) != lead:
        raise RefusedType(f"`weights` has shape {np.shape(weights)}; it must have {lead}.")
    weights = jnp.ones(lead, dtype) if weights is None else jnp.asarray(weights, dtype)
    numbers = check_numbers(layer.learner, numbers, lead, dtype)
    keys, values, queries = (each.astype(dtype) for each in (keys, values, queries))
    tokens = Tokens(keys, values, queries, weights, numbers)
    _refuse_idle(layer, tokens)
    if state is None:
        return layer.init(_zeros(tokens)), tokens
    like = jax.eval_shape(lambda layer: layer.predictor(_zeros(tokens)).init(_zeros(tokens)), layer)
    check_state(state, like)
    return state, tokens


def _refuse_idle(layer: FastWeights, tokens: Tokens) -> None:
    """Refuse numbers that no round reads, such as the prior of a first state."""
    if not tokens.numbers:
        return
    params = _zeros(tokens)
    first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tokens)
    state = jax.eval_shape(lambda layer: layer.predictor(params).init(params), layer)
    play = lambda numbers, *rest: _round(rest[0], rest[1], rest[2]._replace(numbers=numbers))
    closed = jax.make_jaxpr(play)(first.numbers, layer, state, first)
    read = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))[1]
    for name, used in zip(sorted(tokens.numbers), read, strict=False):
        if not used:
            raise RefusedValue(
                f"`{name}` of {layer.learner!r} has no effect on a round, only on the first state, "
                "so it cannot change with the token; leave it to the learner."
            )


def _zeros(tokens: Tokens) -> Any:
    """The first matrix, of NumPy: its numbers are known also while the layer is traced."""
    return np.zeros((tokens.value.shape[-1], tokens.key.shape[-1]), tokens.key.dtype)


def _player(layer: FastWeights, token: Tokens) -> Learner:
    """The predictor with the numbers of a token."""
    learner = with_numbers(layer.learner, token.numbers)
    return matrix_predictor(learner, layer.own_loss, _zeros(token))


def _multiple(layer: FastWeights, token: Tokens, score: Float[Array, " dv"]) -> Array:
    """The multiple of the key that a learner with this score adds."""
    player = _player(layer, token)
    feedback = feedback_of(layer.loss, token.key, score, token.value, token.weight)
    adds = player.facts.adds
    assert isinstance(adds, AddsContext | ShrinksAndAddsContext)  # `form` has checked
    return adds.coefficient_fn(player.hparams, feedback)


def _terms(layer: FastWeights, token: Tokens) -> tuple[Array, Array, Array | None]:
    """c, b and kappa of a token; see `olx.layers.delta`."""
    zero, counts = jnp.zeros_like(token.value), token.weight != 0
    multiple = lambda score: _multiple(layer, token, score)
    free, slope = jax.jvp(multiple, (zero,), (jnp.ones_like(zero),))
    player, keep = _player(layer, token), None
    if isinstance(player.facts.adds, ShrinksAndAddsContext):
        keep = jnp.asarray(player.facts.adds.keep_fn(player.hparams, token.key), zero.dtype)
        keep = jnp.where(counts, keep, 1.0)
    return jnp.where(counts, free, 0.0), jnp.where(counts, -slope[0], 0.0), keep


def _by_delta(layer: FastWeights, state: PyTree, tokens: Tokens) -> tuple[PyTree, Array]:
    (start,), structure = jax.tree.flatten(state)
    terms = jax.vmap(lambda token: _terms(layer, token))(tokens)
    given = delta.Tokens(tokens.key, tokens.query, *terms)
    last, outputs = _by_chunks(delta.play_chunk, delta.chunk_of(len(tokens.key)), start, given)
    return jax.tree.unflatten(structure, [last]), outputs


def _by_least_squares(layer: FastWeights, state: PyTree, tokens: Tokens) -> tuple[PyTree, Array]:
    squares = layer.predictor(_zeros(tokens)).facts.squares
    assert squares is not None  # `form` has checked
    hparams = lambda token: _player(layer, token).hparams
    own = lambda token: jnp.asarray(squares.forget_fn(hparams(token)), token.key.dtype)
    forget = jax.vmap(lambda token: jnp.where(token.weight == 0, 1.0, own(token)))(tokens)
    given = least_squares.Tokens(*tokens[:4], forget)
    state, products = _by_chunks(least_squares.play_chunk, least_squares.CHUNK, state, given)
    score = lambda token, products: squares.score_fn(hparams(token), *products)
    return state, jax.vmap(score)(tokens, products)


def _by_scan(layer: FastWeights, state: PyTree, tokens: Tokens) -> tuple[PyTree, Array]:
    step = lambda state, token: _round(layer, state, token)
    return in_segments(step, state, tokens, math.isqrt(len(tokens.key)))


def _round(layer: FastWeights, state: PyTree, token: Tokens) -> tuple[PyTree, Array]:
    """The state after the round of a token, and the prediction for its query."""
    player = _player(layer, token)
    score = player.predict(state, token.key)
    feedback = feedback_of(layer.loss, token.key, score, token.value, token.weight)
    state = player.update(state, feedback)
    return state, player.predict(state, token.query)


def _by_chunks(play: Callable, size: int, state: PyTree, tokens: Any) -> tuple:
    """The last state and the outputs of `play(state, chunk)`, one chunk of `size` after the other.

    The backward pass keeps one state per chunk and computes the chunk again. What fills up the last
    chunk changes nothing: the last field of `tokens` gets factors of 1, the others get zeros.
    """
    length = len(tokens[0])

    def cut(leaf: Array, end: float) -> Array:
        short = [(0, -length % size), *[(0, 0)] * (leaf.ndim - 1)]
        whole = jnp.pad(leaf, short, constant_values=end)
        return whole.reshape(-1, size, *leaf.shape[1:])

    *terms, factors = tokens
    chunks = [cut(leaf, 0.0) for leaf in terms], None if factors is None else cut(factors, 1.0)
    play_again = jax.checkpoint(lambda state, chunk: play(state, type(tokens)(*chunk[0], chunk[1])))
    state, outputs = lax.scan(play_again, state, chunks)
    join = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:length]
    return state, jax.tree.map(join, outputs)


def _total(loss: Callable[..., Array], score: Array, outcome: Array) -> Array:
    return jnp.sum(loss(score, outcome))


_FORMS = {"delta": _by_delta, "least squares": _by_least_squares, "scan": _by_scan}
