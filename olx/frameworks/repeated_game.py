r"""A convex repeated game: one player that classifies, boosts and ranks.

In every round the player chooses $w_t$, nature answers with a convex function $g_t$, and the player
pays $g_t(w_t)$. Here $g_t$ is $h_t$ times a maximum of hinges of the action $J_t w$ (`olx.games`).
With $c = 1 / \eta$ the player ascends the dual of $\min_w c f(w) + \sum_t g_t(w)$:

$$w_t = \nabla f^*\Big(\frac{acc_t}c\Big), \qquad
  acc_{t+1} = acc_t + J_t^\top \sum_i \alpha_{t,i} m_{t,i}, \qquad
  \alpha_t \ge 0, \quad \sum_i \alpha_{t,i} \le h_t.$$

The game says what is learned: an action is a score, a distribution over examples, or a ranking. The
potential and the rule that chooses $\alpha_t$ are free, as long as the rule raises the dual at
least as much as a subgradient. With $f - \min f$ written as $f$, the dual

$$D_t = -c f^*\Big(\frac{acc_{t+1}}c\Big) + \sum_{s \le t} \langle b_s, \alpha_s\rangle$$

lies between both sides: for every $u$

$$\sum_{s \le t} g_s(w_s) - \sum_{s \le t} c B_s \le D_t \le c f(u) + \sum_{s \le t} g_s(u),$$

with $B_s$ the divergence $B_{f^*}$ of the subgradient step, at most $\|v_s\|_*^2 / (2 \beta c^2)$
for a subgradient $v_s$ and a $\beta$-strongly convex $f$. So

$$\sum_{s \le t} g_s(w_s) - g_s(u) \le c f(u) + \sum_{s \le t} c B_s \le
  c f(u) + \frac1{2 \beta c} \sum_{s \le t} \|v_s\|_*^2.$$

For a booster $e^{-D_t / c}$ is the mean exponential loss of the vote $\sum_s \frac{\alpha_s}c h_s$.
The first inequality is then the bound of AdaBoost: if all edges are at least $\gamma$ and $c = 1 /
(2 \gamma)$, this loss is at most $e^{-2 \gamma^2 t}$.

Shalev-Shwartz and Singer, Convex Repeated Games and Fenchel Duality, 2006, lemma 3, theorem 1 and
section 7; Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, lemma 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.accounts import constants
from olx.frameworks.games import Game, HingeRule, Turn, projected_ascent
from olx.frameworks.primal_dual import finite
from olx.mirrors.base import MirrorMap
from olx.theorem import MET, ZERO, latest, summed
from olx.wrapper import WrapperView, lift_needs


@pytree
class RepeatedGameHparams:
    eta: Scalar
    mirror: MirrorMap
    game: Game
    rule: HingeRule


class RepeatedGameState(NamedTuple):
    acc: PyTree  # minus the sum of all dual vectors, not divided by c


@public
def repeated_game(
    eta: Scalar, mirror: MirrorMap, game: Game, rule: HingeRule | None = None
) -> Learner:
    r"""Play a game of hinges by dual ascent.

    eta: $1 / c$, positive.
    game: one of `olx.games`: `signs()`, `examples()`, `labels()` or `rows()`.
    rule: `olx.games.worst_hinge()`, `projected_ascent()` or `averaged_steps()`; the second if None.

    Only the shape of `params` is used: the first decision is the minimizer of the potential.

    >>> import jax.numpy as jnp, olx
    >>> booster = repeated_game(0.4, olx.mirrors.negative_entropy(), olx.games.examples())
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]] * 10))
    >>> uniform = jnp.ones(3) / 3
    >>> proof = olx.certify(booster, olx.losses.linear_loss, rounds, uniform, uniform)
    >>> bool(proof.holds)
    True
    """
    eta = check.positive("eta", eta)
    check.instance("mirror", mirror, MirrorMap)
    check.instance("game", game, Game)
    rule = projected_ascent() if rule is None else rule
    check.instance("rule", rule, HingeRule)
    if rule.euclidean and not mirror.identity:
        raise RefusedType(
            "this rule is for `olx.mirrors.euclidean()` without a domain; for other "
            "maps take `olx.games.projected_ascent()`."
        )
    hparams, theorems = RepeatedGameHparams(eta, mirror, game, rule), (game_duality, game_regret)
    needs = lift_needs(WrapperView("game", parts=("outcome",)), game)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: RepeatedGameHparams, params: PyTree) -> RepeatedGameState:
    return RepeatedGameState(tree.zeros_like(params))


def predict(hp: RepeatedGameHparams, state: RepeatedGameState, context: PyTree) -> Array:
    return hp.game.act_fn(_decision(hp, state), context)


def update(
    hp: RepeatedGameHparams, state: RepeatedGameState, feedback: Feedback
) -> RepeatedGameState:
    now = turn(hp, state, feedback)
    return _after(now, hp.rule.alpha(now))


def turn(hp: RepeatedGameHparams, state: RepeatedGameState, feedback: Feedback) -> Turn:
    """The round as the rules see it."""
    game, action, context = hp.game, feedback.action, feedback.context
    act = lambda w: game.act_fn(w, context)
    _, transpose = jax.vjp(act, state.acc)
    hinges = game.hinges_fn(game.hparams, action, feedback.outcome)
    return Turn(
        hp.mirror,
        1 / jnp.asarray(hp.eta, action.dtype),
        state.acc,
        act,
        lambda direction: transpose(direction)[0],
        jnp.asarray(game.square_fn(context), action.dtype),
        hinges,
        hinges.gaps(action),
        jnp.asarray(feedback.weight, action.dtype),
    )


def _after(now: Turn, alpha: Array) -> RepeatedGameState:
    return RepeatedGameState(tree.add(now.acc, now.pull(now.hinges.combination(alpha))))


def _decision(hp: RepeatedGameHparams, state: RepeatedGameState) -> PyTree:
    return hp.mirror.to_primal(jax.tree.map(lambda acc: hp.eta * acc, state.acc))


class Account(NamedTuple):
    price: Float[Array, ""]  # c f(u)
    inside: Bool[Array, ""]  # whether u lies in the domain
    own: Float[Array, ""]  # the sum of the player's losses
    other: Float[Array, ""]  # the sum of the losses of u
    moved: Float[Array, ""]  # the sum of c B
    norms: Float[Array, ""]  # the same with norms; infinite if the map states no norm
    gain: Float[Array, ""]  # the sum of <b, alpha>
    spent: Float[Array, ""]  # c f* after the last round
    size: Float[Array, ""]  # for the rounding error


def start(hp: RepeatedGameHparams, state: RepeatedGameState, u: PyTree) -> Account:
    f, u, least = hp.mirror, check.comparator(u, state.acc), _least(hp, state)
    size = (jnp.abs(least) + 4 * constants(f, u)) / hp.eta
    price = (f.potential(u) + least) / hp.eta
    return Account(price, f.outside(u) == 0, *[ZERO] * 6, size=size)


def terms(
    hp: RepeatedGameHparams, state: RepeatedGameState, feedback: Feedback, u: PyTree
) -> Account:
    f, now, least = hp.mirror, turn(hp, state, feedback), _least(hp, state)
    alpha = hp.rule.alpha(now)
    loss = lambda gaps: now.weight * jnp.maximum(jnp.max(gaps), 0.0)
    own, other = loss(now.gaps), loss(now.hinges.gaps(now.act(u)))
    step = now.pull(now.hinges.combination(now.worst_alpha))
    raised = lambda acc: now.c * (f.conjugate(jax.tree.map(lambda x: x / now.c, acc)) - least)
    there, here = raised(tree.add(state.acc, step)), raised(state.acc)
    along, energy = jnp.asarray(tree.vdot(step, _decision(hp, state))), f.energy(step)
    gained, spent = jnp.vdot(now.hinges.bounds, alpha), raised(_after(now, alpha).acc)
    sizes = jnp.abs(jnp.stack([there, here, along, own, other, gained, spent]))
    return Account(
        ZERO,
        MET,
        own,
        other,
        there - here - along,
        jnp.full_like(own, jnp.inf) if energy is None else energy / now.c,
        gained,
        latest(spent),
        jnp.sum(sizes) + now.c * jnp.abs(least),
    )


def _least(hp: RepeatedGameHparams, state: RepeatedGameState) -> Array:
    """f*(0), minus the minimum of f."""
    return jnp.asarray(hp.mirror.conjugate(tree.zeros_like(state.acc)))


def duality_sides(hp: RepeatedGameHparams, account: Account, u: PyTree) -> Certificate:
    left, primal = account.own - account.moved, account.price + account.other
    dual = account.gain - account.spent
    return _given(account, Certificate(left, dual, _size(account), primal))


def regret_sides(hp: RepeatedGameHparams, account: Account, u: PyTree) -> Certificate:
    left, right = account.own - account.other, account.price + account.moved
    published = account.price + account.norms if hp.mirror.states_norm else None
    return _given(account, Certificate(left, right, _size(account), published))


def _size(account: Account) -> Array:
    return account.size + finite(account.price)


def _given(account: Account, proof: Certificate) -> Certificate:
    return proof.given(DOMAIN, account.inside)


SOURCE = "Shalev-Shwartz and Singer 2006"
game_duality = summed("game_duality", f"{SOURCE}, lemma 3", terms, duality_sides, start)
game_regret = summed("game_regret", f"{SOURCE}, theorem 1", terms, regret_sides, start)
