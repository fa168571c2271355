"""How well Oja's sketch estimates the leading eigenvalues on real data.

Table 4.1 of Luo, Optimal and Adaptive Online Learning, 2016: the largest relative difference
between the top ten eigenvalues of the sum of the sketched squares and the estimates of Oja's sketch
of size 10, after one pass in file order. The learner is that of table D.3 with diagonal adaptation
(configs/reproduce/luo_table_d3.toml), with the best of its ten step sizes. The columns are:

  learned    of the gradients in the adapted rows: what the sketch of the learner has seen
  rows       of the adapted rows alone, with the same scales and slope 1
  in print   the published number; its unit is not stated

The printed numbers are fractions, not percentages: ours, as fractions, differ from them by 1 to
13 % on the three sets with many sparse features, where the sketch has not found all ten directions
and underestimates, and by a factor of at most 2.5 on four of the other five. Those have 8 to 14
features, so their tenth eigenvalue is tiny and is overestimated several times; on magic04 it is 111
times against 11. These depend on the first directions, which are random. With the bias, diabetes
has 9 features, and 9 eigenvalues are compared.

    OLX_DATA=... python -m experiments.sketch_eigenvalues
    OLX_DATA=... python -m experiments.sketch_eigenvalues --sets heart diabetes
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from experiments.held_out import errors
from experiments.sketched_newton import eigenvalue_errors, sketched, slope_one
from olx.lab.data import load
from olx.second_order import diagonal_adaptation, oja, sketched_newton

PRINT = {
    "a9a": 0.896533,
    "australian": 0.846063,
    "breast-cancer": 5.383578,
    "diabetes": 5.128097,
    "heart": 4.360492,
    "magic04": 11.479917,
    "mushrooms": 0.910814,
    "w8a": 0.954262,
}
CURVATURE, START = 0.25, 0.1
STEPS = 2.0 ** np.arange(-3, 7)


def compare(rounds: olx.Rounds, steps: np.ndarray = STEPS) -> tuple[float, float]:
    """The largest relative errors for the gradients of the learner, and for the rows alone."""
    loss, width = olx.losses.modified_huber, rounds.context.shape[1]
    sketch = oja(min(10, width), key=jax.random.key(0))
    plain = lambda step: sketched_newton(sketch, 1 / step, curvature=CURVATURE)
    adapted = lambda step: diagonal_adaptation(plain(step), START, current=True)
    best = steps[errors(adapted, loss, rounds, step=steps).argmin()]
    record = lambda state, feedback: (feedback.grad, state.inner.small.energy)
    run = olx.run(adapted(best), loss, rounds, jnp.zeros(width), record=record)
    slopes, energy = (np.asarray(each, float) for each in run.trace)
    raw = np.asarray(rounds.context, float)
    scaled = raw / np.sqrt(START + np.cumsum((slopes[:, None] * raw) ** 2, axis=0))
    rows = olx.Rounds(scaled.astype(rounds.context.dtype), rounds.outcome)
    last = np.array([len(raw) - 1])
    learned = eigenvalue_errors(np.sqrt(CURVATURE) * slopes[:, None] * scaled, energy, last)
    _, energy = sketched(plain(1.0), slope_one, rows)
    alone = eigenvalue_errors(np.sqrt(CURVATURE) * scaled, energy, last)
    return float(learned[0]), float(alone[0])


def main() -> None:
    parser = output.arguments(__doc__, data=True)
    parser.add_argument("--sets", nargs="+", choices=PRINT, default=list(PRINT))
    asked = parser.parse_args()
    print(f"{'set':<14}{'learned':>10}{'rows':>10}{'in print':>10}")
    for name in asked.sets:
        try:
            data = load(name, asked.data, bias=True)
        except OSError as error:
            sys.exit(f"sketch_eigenvalues: {error}")
        data = data.rows(slice(32561)) if name == "a9a" else data
        learned, alone = compare(data.rounds())
        print(f"{name:<14}{learned:>10.3f}{alone:>10.3f}{PRINT[name]:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
