"""Few relevant features among many: mistakes against the number of features.

The label says whether at least r of k relevant bits are on, among n features. In theory the
mistakes of a Perceptron grow with n, those of Winnow with log n; the experiment confirms it. At
each width one sweep plays each family:

- the p-norm Perceptron with p = 2, which is the Perceptron, and with p = 2 log n;
- Winnow with the learning rate that theory names, and with a grid of others, the best of them
  chosen in hindsight;
- the self-tuned Winnow, which has no learning rate.

    python -m experiments.r_of_k
    python -m experiments.r_of_k --widths 16 64 256 1024 --plot mistakes.png
"""

import importlib.util
import math
import pathlib

import jax
import jax.numpy as jnp

import olx
from experiments import output

NAMES = ("Perceptron", "p-norm", "Winnow", "Winnow, best rate", "self-tuned", "Winnow's bound")


def mistakes(width: int, rounds: int, r: int, k: int, seed: int) -> dict[str, float]:
    """The number of mistakes of each algorithm on one stream."""
    stream, _ = olx.streams.r_of_k(jax.random.key(seed), rounds, width, r, k)
    start = jnp.zeros(width)
    count = lambda learners: olx.sweep(learners, olx.losses.zero_one, stream, start).total
    size = r + k - 0.5
    powers = jnp.array([2.0, max(2.0, 2 * math.log(width))])
    rates = jnp.append(jnp.geomspace(0.02, 2.0, 15), 1 / (2 * size))
    additive, pnorm = count(olx.batch(olx.classification.pnorm_perceptron, p=powers))
    fixed = count(olx.batch(olx.classification.winnow, eta=rates))
    (tuned,) = count(olx.batch(lambda _: olx.classification.self_tuned_winnow(), _=jnp.zeros(1)))
    numbers = additive, pnorm, fixed[-1], jnp.min(fixed), tuned, 8 * size**2 * math.log(width)
    return dict(zip(NAMES, map(float, numbers), strict=True))


def table(widths: list[int], results: list[dict[str, float]]) -> str:
    lines = ["features".rjust(9) + "".join(name.rjust(19) for name in NAMES)]
    for width, result in zip(widths, results, strict=True):
        lines.append(f"{width:9d}" + "".join(f"{result[name]:19.0f}" for name in NAMES))
    return "\n".join(lines)


def plot(widths: list[int], results: list[dict[str, float]], path: pathlib.Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for name in NAMES:
        style = "--" if name.endswith("bound") else "o-"
        axes.plot(widths, [result[name] for result in results], style, label=name)
    axes.set(xscale="log", yscale="log", xlabel="features", ylabel="mistakes")
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = output.arguments(__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64, 128, 256, 512])
    parser.add_argument("--rounds", type=int, default=3000, help="of each stream")
    parser.add_argument("--r", type=int, default=1, help="how many relevant bits make a yes")
    parser.add_argument("--k", type=int, default=2, help="how many bits are relevant")
    parser.add_argument("--seed", type=int, default=0, help="of the streams")
    parser.add_argument("--plot", type=pathlib.Path, help="where to write a picture; else none")
    args = parser.parse_args()
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")

    results = [mistakes(n, args.rounds, args.r, args.k, args.seed) for n in args.widths]
    print(table(args.widths, results))
    if args.plot:
        plot(args.widths, results, args.plot)
        print(f"\nwritten: {args.plot}")


if __name__ == "__main__":
    main()
