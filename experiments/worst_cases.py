"""How loose regret bounds are: the worst regret there is, the worst one found, and the bound.

Gradients have length at most 1, comparators lie in the unit ball around the start, losses of
experts lie between 0 and 1. For every method and number of rounds:

  exact   the worst regret of all streams, if it is known: the value of a semidefinite program
          (PEPit); for projected descent, over all convex domains within the unit ball
  0/1     for Hedge, the largest regret over all streams of losses of 0 and 1
  found   the largest regret that gradient ascent on the stream found (olx.hindsight.worst_case),
          with the unit ball as the domain of projected methods
  bound   the theorem, evaluated on the stream found, in the form of its source

    python -m experiments.worst_cases
    python -m experiments.worst_cases --rounds 1 2 3 --out results/worst_cases

The exact values need PEPit: pip install pepit
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx.convex import sets
from olx.hindsight import StreamSet, exact_worst_case, label_losses, linear_losses, score_losses

HEAD = ("method", "rounds", "exact", "0/1", "found", "theorem", "bound", "bound / found")
BALL = sets.ball(1.0)
VECTORS = linear_losses(BALL)
EXPERTS = linear_losses(sets.box(0.0, 1.0))


class Case(NamedTuple):
    """A method, and the game that it plays."""

    make: Callable[[int], olx.Learner]  # from the number of rounds
    theorem: str | olx.Theorem  # one that the learner carries, or another one
    exact: Callable[[olx.Learner, int], float] | None
    streams: StreamSet = VECTORS
    start: Callable[[int], jax.Array] = lambda rounds: jnp.zeros(rounds + 1)
    comparators: sets.ConvexSet = BALL
    apply: Callable = olx.hindsight.itself
    experts: int | None = None  # to enumerate losses of 0 and 1


class Row(NamedTuple):
    method: str
    rounds: int
    exact: float | None
    bits: float | None
    found: float
    theorem: str
    bound: float


def tuned(rounds: int) -> float:
    return 1 / math.sqrt(rounds)


def by_pepit(learner: olx.Learner, rounds: int) -> float:
    return float(exact_worst_case(learner, rounds, jnp.zeros(2), gradient=1.0, radius=1.0).regret)


def over_domains(lazy: bool, learner: olx.Learner, rounds: int) -> float:
    """The worst regret of projected descent over all convex domains in the unit ball.

    lazy: whether the sum of gradients is projected, and not the last decision minus a gradient.
    """
    from PEPit import PEP, Point
    from PEPit.functions import ConvexIndicatorFunction
    from PEPit.primitive_steps import proximal_step

    problem, eta = PEP(), tuned(rounds)
    start, u = problem.set_initial_point(), problem.set_initial_point()
    domain = problem.declare_function(ConvexIndicatorFunction, R=1.0, center=start)
    domain.oracle(start), domain.oracle(u)
    total, w, regret = start, start, 0.0
    for _ in range(rounds):
        g = Point()
        problem.add_constraint(g**2 <= 1.0)
        regret = regret + g * (w - u)
        total = total - eta * g
        w, _, _ = proximal_step(total if lazy else w - eta * g, domain, 1.0)
    problem.set_performance_metric(regret)
    return problem.solve(verbose=0, solver="CLARABEL")


def over_bits(experts: int, learner: olx.Learner, rounds: int) -> float:
    """The worst regret of a learner of experts over all streams of losses of 0 and 1."""
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=rounds * experts)))
    losses = jnp.asarray(bits.reshape(-1, rounds, experts))
    play = lambda outcome: (
        olx.rollout(
            learner,
            olx.losses.linear_loss,
            olx.Rounds(None, outcome),
            jnp.full(experts, 1 / experts),
        ).total
    )
    best = jnp.min(jnp.sum(losses, axis=1), axis=-1)
    return float(jnp.max(jax.jit(jax.vmap(play))(losses) - best))


def of_experts(count: int) -> Case:
    eta = lambda rounds: math.sqrt(8 * math.log(count) / rounds)
    return Case(
        lambda rounds: olx.experts.anytime_hedge(eta(rounds), low=0.0, high=1.0),
        "mixability_gaps",
        None,
        EXPERTS,
        lambda rounds: jnp.full(count, 1 / count),
        sets.simplex(),
        experts=count,
    )


FLAT = olx.mirrors.euclidean()
CASES = {
    "gradient descent": Case(lambda t: olx.ogd(tuned(t)), "gradient_descent", by_pepit),
    "gradient descent, a third of the step": Case(
        lambda t: olx.ogd(tuned(t) / 3), "gradient_descent", by_pepit
    ),
    "dual averaging, growing regularizer": Case(
        lambda t: olx.ftrl(1.0, olx.regularizers.growing(FLAT, 0.5)),
        olx.theorems.root_regret(FLAT),
        by_pepit,
    ),
    "optimistic gradient descent": Case(
        lambda t: olx.optimistic_md(tuned(t), FLAT), "missed_gradients", by_pepit
    ),
    "projected descent": Case(
        lambda t: olx.ogd(tuned(t), BALL),
        "gradient_descent",
        lambda learner, t: over_domains(False, learner, t),
    ),
    "lazily projected descent": Case(
        lambda t: olx.omd(tuned(t), olx.mirrors.euclidean(BALL)),
        "master_inequality",
        lambda learner, t: over_domains(True, learner, t),
    ),
    "Hedge, 2 experts": of_experts(2),
    "Hedge, 3 experts": of_experts(3),
    "linear descent, hinge loss": Case(
        lambda t: olx.linear(olx.ogd(tuned(t))),
        "gradient_descent",
        None,
        label_losses(olx.losses.hinge, BALL),
        apply=olx.dot,
    ),
    "Vovk-Azoury-Warmuth, squared loss": Case(
        lambda t: olx.second_order.vaw(1.0),
        "logarithmic_regret",
        None,
        score_losses(olx.losses.squared, BALL, sets.box(-1.0, 1.0)),
        apply=olx.dot,
    ),
}


def row(method: str, rounds: int, **search: Any) -> Row:
    """One line of the table."""
    case = CASES[method]
    learner = case.make(rounds)
    named = isinstance(case.theorem, str)
    worst = olx.hindsight.worst_case(
        learner,
        rounds,
        case.streams,
        case.start(rounds),
        comparators=case.comparators,
        apply=case.apply,
        theorems=None if named else (case.theorem,),
        **search,
    )
    proof = worst.proofs[case.theorem if named else case.theorem.name]
    bound = proof.right if proof.published is None else proof.published
    exact = None if case.exact is None else case.exact(learner, rounds)
    bits = None if case.experts is None else over_bits(case.experts, learner, rounds)
    return Row(method, rounds, exact, bits, float(worst.regret), proof.name, float(bound[-1]))


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    return output.table(HEAD, map(cells, rows))


def cells(one: Row) -> list[str]:
    known = ["" if each is None else f"{each:.4f}" for each in (one.exact, one.bits)]
    numbers = *known, f"{one.found:.4f}", f"`{one.theorem}`", f"{one.bound:.4f}"
    return [one.method, str(one.rounds), *numbers, f"{one.bound / one.found:.3f}"]


def draw(rows: list[Row], path: Path) -> None:
    methods = list(dict.fromkeys(one.method for one in rows))
    figure = output.figure(12, 2.6 * math.ceil(len(methods) / 4))
    if figure is None:
        return
    panels = figure.subplots(math.ceil(len(methods) / 4), 4, squeeze=False).flat
    for axes, method in itertools.zip_longest(panels, methods):
        if method is None:
            axes.set_axis_off()
            continue
        own = [one for one in rows if one.method == method]
        rounds = [one.rounds for one in own]
        axes.plot(rounds, [one.bound for one in own], "--", color="C3", label="bound")
        if own[0].exact is not None:
            axes.plot(rounds, [one.exact for one in own], "s", color="C1", ms=8, label="exact")
        if own[0].bits is not None:
            axes.plot(rounds, [one.bits for one in own], "D", color="C2", ms=8, label="0/1 losses")
        axes.plot(rounds, [one.found for one in own], "o-", color="C0", ms=4, label="found")
        axes.set_title(method, fontsize=9)
        axes.set(xticks=rounds, xlabel="rounds", ylim=(0, 1.1 * max(one.bound for one in own)))
        axes.legend(frameon=False, fontsize=8)
    figure.supylabel("regret")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = output.arguments(__doc__, out="worst_cases")
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--methods", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--searches", type=int, default=64, help="for each number of the table")
    parser.add_argument("--steps", type=int, default=1000, help="of each search")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rows = []
    for method, rounds in itertools.product(given.methods, given.rounds):
        rows.append(row(method, rounds, searches=given.searches, steps=given.steps))
        print(" | ".join(cells(rows[-1])), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "worst_cases.md").write_text(table(rows) + "\n")
    draw(rows, given.out / "worst_cases.png")
    print(f"\nwritten: {given.out}/worst_cases.md and worst_cases.png")


if __name__ == "__main__":
    main()
