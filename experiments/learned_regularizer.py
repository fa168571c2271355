r"""A learned regularizer: the potential has parameters, trained by gradients through games.

The regularizer is `olx.mirrors.convex_network`: its directions, widths and levels of curvature are
leaves. A step of Adam plays new games of a family by `olx.rollout` under `vmap`, and differentiates
their mean total loss through all rounds. The learner is `olx.ftrl`, for the learned potential and
for every fixed map. Training starts from the best Euclidean map.

    subspace        targets lie in a hidden subspace of a fifth of the dimensions
    scales          a fifth of the coordinates are relevant, at random; each has a size of its own,
                    which is the same in all games and varies by a factor of up to 30
    rotated scales  the same in a hidden orthonormal basis
    isotropic       normal targets without structure: the control, where nothing can be learned
    rotated signs   a tenth of the coordinates in a hidden basis are relevant, all of the same size

The subspace, the sizes and the basis are drawn once per family. Targets, rows and noise are new in
every game. Held-out games play no part in training.

The numbers of each fixed map are chosen in three ways: on games for training; in hindsight, one
choice for all held-out games; and in hindsight for each held-out game alone, which no player could
do. The learned potential has one way: it is trained, then played. AdaGrad, COCOB, which has no step
size, and the forecaster of Vovk, Azoury and Warmuth, which keeps a matrix, are no fixed maps; they
are shown for reference.

Certificates: `olx.certify` checks the master inequality and the regret bound (5) of corollary 1 of
Orabona, Crammer, Cesa-Bianchi, 2015, on every held-out game, with the target as comparator.

    python -m experiments.learned_regularizer
    python -m experiments.learned_regularizer --seed 1 --out results/other
"""

import argparse
import importlib.util
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import learned_games as play
from experiments import learned_report as report
from experiments import output
from experiments.held_out import Entry
from experiments.learned_games import Draw, Games
from experiments.learned_potentials import LEARNED, learner, plain, trained
from olx import first_order, mirrors, second_order
from olx.certificate import Certificates

STEPS = np.geomspace(1e-3, 1.0, 25)


def fixed() -> dict[str, Entry]:
    """The fixed maps and the references, with the values that are tried of their numbers."""
    powers = 1 / (1 - 1 / np.array([2.1, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0]))
    sizes = np.geomspace(0.5, 32.0, 7)
    return {
        "Euclidean": Entry(plain, {"eta": STEPS}),
        "p-norm": Entry(lambda eta, q: learner(mirrors.pnorm(q), eta), {"eta": STEPS, "q": powers}),
        "EG+-": Entry(
            lambda eta, total: learner(mirrors.signed_entropy(total), eta),
            {"eta": np.geomspace(1e-4, 3.0, 37), "total": sizes},
        ),
        "hyperbolic entropy": Entry(
            lambda eta, beta: olx.linear(olx.ftrl(eta, mirrors.hypentropy(beta))),
            {"eta": np.geomspace(1e-3, 10.0, 33), "beta": np.geomspace(1e-3, 10.0, 9)},
        ),
        "AdaGrad": Entry(
            lambda eta, delta: olx.linear(first_order.adagrad(eta, delta=delta)),
            {"eta": np.geomspace(1e-2, 3.0, 25), "delta": np.geomspace(1e-2, 1e4, 7)},
        ),
        "COCOB": Entry(
            lambda alpha: olx.linear(first_order.cocob(alpha)),
            {"alpha": np.geomspace(1.0, 100.0, 7)},
        ),
        "Vovk-Azoury-Warmuth": Entry(second_order.vaw, {"a": np.geomspace(0.1, 100.0, 16)}),
    }


class Tuned(NamedTuple):
    """The totals of a fixed map in the held-out games, with numbers chosen in three ways."""

    numbers: dict[str, float]  # chosen on games for training
    ahead: np.ndarray  # with these numbers
    shared: np.ndarray  # with the best numbers in hindsight, the same for all games
    each: np.ndarray  # with the best numbers in hindsight of each game


def tuned(entry: Entry, training: Games, held: Games) -> Tuned:
    axes = olx.grid(**{name: jnp.asarray(v, jnp.float32) for name, v in entry.grid.items()})
    before, after = (play.totals(entry.make, axes, each.rounds) for each in (training, held))
    best, late = before.mean(axis=1).argmin(), after.mean(axis=1).argmin()
    numbers = {name: float(values[best]) for name, values in axes.items()}
    return Tuned(numbers, *map(np.asarray, (after[best], after[late], after.min(axis=0))))


def certified(one: olx.Learner, held: Games) -> Certificates:
    """Both sides of each theorem after every round of every held-out game."""
    first = jnp.zeros(held.target.shape[1])
    trace = partial(olx.rollout, one, olx.losses.squared, record=olx.record.trace)
    runs = jax.jit(jax.vmap(lambda rounds: trace(rounds, first)))(held.rounds)
    return jax.vmap(olx.certify, (None, 0, 0))(one, runs, held.target)


def compared(name: str, draw: Draw, asked: argparse.Namespace) -> report.Family:
    """All players of one family."""
    key = jax.random.key(asked.seed)
    training = play.games(draw, asked.tuning, asked.rounds, jax.random.fold_in(key, 2))
    held = play.games(draw, asked.held, asked.rounds, jax.random.fold_in(key, 3))
    rivals = {rival: tuned(entry, training, held) for rival, entry in fixed().items()}
    eta = rivals["Euclidean"].numbers["eta"]
    maps = {kind: trained(shape, eta, draw, asked) for kind, shape in LEARNED.items()}
    mirror = {kind: shape(eta, maps[kind].numbers) for kind, shape in LEARNED.items()}
    paid = {kind: play.losses(learner(each), held.rounds) for kind, each in mirror.items()}
    rival = min(rivals, key=lambda each: rivals[each].ahead.mean())
    paid[rival] = play.losses(fixed()[rival].make(**rivals[rival].numbers), held.rounds)
    proofs = {
        "learned network": certified(learner(mirror["learned network"]), held),
        "Euclidean": certified(plain(eta), held),
    }
    noise = held.rounds.outcome - jnp.einsum("ntd,nd->nt", held.rounds.context, held.target)
    return report.Family(
        name,
        rivals,
        {kind: np.asarray(each) for kind, each in paid.items()},
        np.asarray(jnp.sum(noise**2 / 2, axis=1)),
        {kind: each.curve for kind, each in maps.items()},
        proofs,
        mirror["learned network"],
        eta,
        rival,
    )


def main() -> None:
    parser = output.arguments(__doc__, out="learned_regularizer")
    whole = partial(parser.add_argument, type=int)
    whole("--features", default=20)
    whole("--rounds", default=200, help="of each game")
    whole("--steps", default=300, help="of the training")
    whole("--batch", default=32, help="new games per step of the training")
    whole("--tuning", default=128, help="games on which the fixed maps are tuned")
    whole("--held", default=20, help="held-out games")
    whole("--seed", default=0)
    parser.add_argument("--rate", type=float, default=0.1, help="of Adam, at first")
    asked = parser.parse_args()
    found = []
    for name, draw in play.families(asked.features, asked.seed).items():
        found.append(compared(name, draw, asked))
        print(report.table(found[-1]), flush=True)
        report.write(found, asked.out)
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is missing, `pip install 'olx[lab]'` brings it")
        return
    report.draw(found, asked.out)
    print(f"written: {asked.out}/table.md, table.csv, certificates.md, learned.svg and .png")


if __name__ == "__main__":
    main()
