"""One game, played three times: a learner, a booster and a ranker are the same player.

Shalev-Shwartz and Singer, Convex Repeated Games and Fenchel Duality, 2006, derive online learning
and boosting from one game. In every round a player chooses w, nature answers with a convex
function g, and the player pays g(w). Here the player is one function, `olx.repeated_game`, and
`play_instance` below calls it for each of

- a learner, who classifies by the sign of a score. Nature answers with a row and its label;
- a booster, who weighs examples. Nature answers with the hypothesis of a weak learner;
- a ranker, who puts relevant labels first. Nature answers with a row and its relevant labels.

They differ in the potential and in the hinges that an answer makes. One lemma holds for all: the
dual of the game lies between the loss of the player, less what its steps cost, and the price of any
fixed decision u. What the dual means differs: for the booster it is the exponential loss.

    python -m experiments.one_game
    python -m experiments.one_game --plot one_game.png
"""

import math
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output

GAMMA = 0.1  # the edge of the weak learner: the labels are a vote of five stumps


class Instance(NamedTuple):
    eta: float
    mirror: olx.MirrorMap
    game: olx.games.Game
    nature: olx.Adversary
    params: jax.Array
    u: jax.Array  # the fixed decision that the player is compared with


class Result(NamedTuple):
    run: olx.Run
    duality: olx.Certificate
    regret: olx.Certificate
    meaning: str


def instances(rounds: int, seed: int) -> dict[str, Instance]:
    draw = np.random.default_rng(seed)
    stream, truth = olx.streams.linear_classification(jax.random.key(seed), rounds, 10, margin=0.1)
    learner = Instance(
        0.1,
        olx.mirrors.euclidean(),
        olx.games.signs(),
        in_turn(olx.losses.hinge, stream),
        jnp.zeros(10),
        3 * truth,
    )
    rows = np.where(draw.random((80, 9)) < 0.5, 1.0, 0.0)
    labels = np.where(rows[:, :5].sum(1) > 2, 1.0, -1.0)  # so a stump has an edge of 1 / 10
    booster = Instance(
        2 * GAMMA,
        olx.mirrors.negative_entropy(),
        olx.games.examples(),
        olx.boosting.adversary(olx.boosting.stumps(rows), labels),
        jnp.zeros(80),
        jnp.full(80, 1 / 80),
    )
    weights, words = draw.normal(size=(5, 10)), draw.normal(size=(rounds, 10)) / math.sqrt(10)
    relevant = (words @ weights.T > 0.3).astype(float)
    ranker = Instance(
        0.3,
        olx.mirrors.euclidean(),
        olx.games.labels(),
        in_turn(olx.losses.label_hinge(), olx.Rounds(jnp.asarray(words), jnp.asarray(relevant))),
        jnp.zeros((5, 10)),
        jnp.asarray(weights),
    )
    return {"learner": learner, "booster": booster, "ranker": ranker}


def in_turn(loss, rounds: olx.Rounds) -> olx.Adversary:
    """Nature that answers with the rounds of a stream, whatever the player does."""
    return olx.Adversary(rounds, loss, _first, _context, _outcome)


def _first(rounds: olx.Rounds) -> jax.Array:
    return jnp.zeros((), int)


def _context(rounds: olx.Rounds, now: jax.Array) -> jax.Array:
    return rounds.context[now]


def _outcome(rounds: olx.Rounds, now: jax.Array, action: jax.Array):
    return rounds.outcome[now], now + 1


def play_instance(name: str, one: Instance, rounds: int) -> Result:
    """The game: the same three calls for every instance."""
    player = olx.repeated_game(one.eta, one.mirror, one.game)
    run = olx.play(player, one.nature, one.params, rounds, record=olx.record.trace)
    proofs = olx.certify(player, run, one.u)
    return Result(
        run, proofs["game_duality"], proofs["game_regret"], MEANING[name](one, run, proofs)
    )


def _mistakes(one: Instance, run: olx.Run, proofs) -> str:
    told = run.trace.feedback
    wrong = np.sum(np.asarray(told.action) * np.asarray(told.outcome) <= 0)
    return f"{wrong} mistakes, at most the losses, {run.total:.1f}"


def _training_error(one: Instance, run: olx.Run, proofs) -> str:
    acc = np.asarray(run.state.acc)  # minus the votes
    loss = math.exp(-one.eta * float(proofs["game_duality"].right[-1]))
    bound = f"exp(-2 gamma^2 T) = {math.exp(-2 * GAMMA**2 * len(run.losses)):.3f}"
    return f"training error {np.mean(acc >= 0):.3f} <= exponential loss {loss:.3f} <= {bound}"


def _rank_mistakes(one: Instance, run: olx.Run, proofs) -> str:
    told = run.trace.feedback
    wrong = np.sum(np.asarray(jax.vmap(olx.ranking.mistake)(told.action, told.outcome)))
    return f"{wrong:.0f} rankings with a mistake, at most the losses, {run.total:.1f}"


MEANING = {"learner": _mistakes, "booster": _training_error, "ranker": _rank_mistakes}


def table(results: dict[str, Result]) -> str:
    head = f"{'':9}{'loss - steps':>14} <= {'dual':>9} <= {'price of u':>10}"
    lines = [head + f"{'regret':>12} <= {'bound':>8}  certificate"]
    for name, one in results.items():
        left, right, most = (float(side[-1]) for side in _sides(one.duality))
        regret, bound = float(one.regret.left[-1]), float(one.regret.right[-1])
        verdict = "holds" if one.duality.holds and one.regret.holds else "FAILS"
        lines.append(
            f"{name:9}{left:14.2f} <= {right:9.2f} <= {most:10.2f}{regret:12.2f} <= {bound:8.2f}  "
            f"{verdict}"
        )
    return "\n".join([*lines, "", *(f"{name}: {one.meaning}" for name, one in results.items())])


def _sides(proof: olx.Certificate) -> tuple:
    return proof.left, proof.right, proof.published


def draw(*panels, results: dict[str, Result]) -> None:
    """One panel per instance: the dual between both sides, round by round."""
    labels = "loss of the player, less its steps", "dual of the game", "price of u"
    for axes, (name, one) in zip(panels, results.items(), strict=True):
        for side, label in zip(_sides(one.duality), labels, strict=True):
            axes.plot(np.arange(1, len(side) + 1), side, label=label)
        axes.set(title=name, xlabel="round")
    panels[0].legend(frameon=False, fontsize=8.5)


def results(rounds: int = 150, seed: int = 0) -> dict[str, Result]:
    return {name: play_instance(name, one, rounds) for name, one in instances(rounds, seed).items()}


def main() -> None:
    parser = output.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0, help="of the streams")
    parser.add_argument("--plot", type=pathlib.Path, help="where to write a picture; else none")
    args = parser.parse_args()
    seen = results(args.rounds, args.seed)
    print(table(seen))
    figure = output.figure(10, 3.2) if args.plot else None
    if figure is not None:
        draw(*figure.subplots(1, 3), results=seen)
        figure.savefig(args.plot, dpi=150)
        print(f"\nwritten: {args.plot}")


if __name__ == "__main__":
    main()
