r"""Learners as layers: associative recall, regression in context, and a model of characters.

The network is the same for all learners: rows, a causal filter over three tokens, one layer of fast
weights (`olx.layers`) and a linear map of its output and of the last rows. A gate of each token is
the weight of its round. The network also trains numbers of some learners, by their logarithms. "No
layer" drops the layer, and shows what can be had without a memory.

  recall       pairs of a key and a value, then every key once, in random order; the answer is its
               value. A share of right answers; guesses have 1/32. This is MQAR of Arora et al.,
               Zoology, arXiv:2312.04927, 2023, with 16 pairs at most and each key asked once.
  changing     the same with up to 4 keys, each shown 3 times, each time with a new value; the
               answer is the last one. As in Schlag, Irie, Schmidhuber, Linear Transformers Are
               Secretly Fast Weight Programmers, 2021, section 6.1, keys with replacement.
  regression   rows x and y = <w, x> + noise with w of the sequence, and y of the next row to be
               predicted, after 6, 12 and 23 examples. The mean of squared errors; a perfect
               prediction has 0.01.
  characters   the next character of the topics in the documentation of Python, which is a part of
               its standard library, in windows of 32. Bits per character of the last tenth of the
               text, which no training has seen.

Every number is a mean over seeds, which draw the first weights and all data, with its standard
error. All trainings have the same steps, batches and rate. These and the sizes were chosen among
about eight settings, by how surely the delta rule and linear attention train; a layer that needs
another rate is shown worse than it is. Time and memory are those of the loss of a long
sequence with its gradient, without the network: seconds of CPU, the least of five, and the working
memory that the compiler states. `arow` and other learners of labels are no layers, since values are
real vectors. AROW for regression (Vaits, Crammer 2011) with parameter r and the first covariance I
is ridge regression with a = r, so the layer of ridge regression is that of AROW, too.

What three seeds show with 1000 steps, mean and standard error:

- recall, keys of length 16, 16 pairs: ridge 0.997 ± 0.002, the delta rule 0.965 ± 0.008, AdaGrad
  0.954 ± 0.019, gated 0.946 ± 0.011, linear attention 0.921 ± 0.059, Longhorn 0.848 ± 0.074, no
  layer 0.038. With keys of length 8 the delta rule has 0.988 and 0.927 with 4 and 8 pairs, linear
  attention 0.863 and 0.823; with 16 pairs, twice the length, both have 0.73.
- changing, keys of length 8, 4 keys: 1.5-norm 0.77 ± 0.07, gated 0.72 ± 0.24, the delta rule 0.71 ±
  0.23, Longhorn 0.70 ± 0.22, signed entropy 0.43 ± 0.16, AdaGrad 0.42 ± 0.06, linear attention
  0.40 ± 0.03, hyperbolic entropy 0.36 ± 0.09, ridge 0.34 ± 0.07, VAW 0.31 ± 0.07, no layer 0.15.
  What adds, or weighs all rounds alike, mixes old values with the last one.

- regression, squared error after 6, 12 and 23 examples: ridge 0.30, 0.12, 0.087, AdaGrad 0.44,
  0.20, 0.11, Longhorn 0.45, 0.22, 0.11, hyperbolic entropy 0.46, 0.22, 0.12, VAW 0.38, 0.15, 0.12,
  gated 0.47, 0.24, 0.13, 1.5-norm 0.50, 0.24, 0.14, the delta rule 0.48, 0.24, 0.14, signed entropy
  0.49, 0.28, 0.22, linear attention 0.67, 0.38, 0.35, no layer 1.1.
- characters, bits: gated 2.59, 1.5-norm 2.64, the delta rule 2.64, Longhorn 2.64, AdaGrad 2.66,
  signed entropy 2.68, ridge 2.69, VAW 2.70, linear attention 2.74, no layer 2.95, each ± 0.02 to
  0.04. Hyperbolic entropy diverges on unseen text.

The order of the delta rule and linear attention is that in print on both, in the means; on recall
the difference is smaller than its error. Why the delta rule does not lead with short keys was not
examined.

    python -m experiments.associative_recall
    python -m experiments.associative_recall --quick
    python -m experiments.associative_recall --tasks recall --layers "delta rule" ridge --seeds 5
"""

import csv
import math
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, PyTree

import olx
from experiments import output
from olx.lab.report.scores import plus_minus
from olx.layers import FastWeights, fast_weights, with_forgetting

WIDTH, VALUES, FILTER = 32, 16, 3  # of rows, of values, of the causal filter
SYMBOLS = 32  # of keys, and of values
NOISE, FEATURES = 0.1, 6
PAIRS, EXAMPLES, WINDOW = 16, 24, 32
CHANGING, TIMES = 4, 3  # keys whose values change, and how often each is shown
HEAD = ("task", "layer", "form", "state", "measure", "mean", "error", "seeds")


class Entry(NamedTuple):
    """A layer, from numbers that the network trains."""

    make: Callable[..., FastWeights] | None
    numbers: dict[str, float] = {}  # noqa: RUF012
    keep: bool = False  # whether the network gives the number `keep` of each token


def descent(eta: Any, mirror: olx.MirrorMap) -> FastWeights:
    return fast_weights(olx.omd(eta, mirror))


LAYERS = {
    "no layer": Entry(None),
    "linear attention": Entry(lambda: fast_weights(olx.ogd(1.0), olx.losses.aligned)),
    "delta rule": Entry(lambda: fast_weights(olx.ogd(1.0))),
    "gated delta rule": Entry(lambda: fast_weights(with_forgetting(olx.ogd(1.0), 1.0)), keep=True),
    "implicit (Longhorn)": Entry(
        lambda eta: fast_weights(olx.implicit(eta, olx.losses.squared)), {"eta": 2.0}
    ),
    "ridge (Mesa)": Entry(lambda a: fast_weights(olx.second_order.ridge(a)), {"a": 0.5}),
    "VAW": Entry(lambda a: fast_weights(olx.second_order.vaw(a)), {"a": 0.5}),
    "AdaGrad": Entry(lambda eta: fast_weights(olx.first_order.adagrad(eta)), {"eta": 0.5}),
    "1.5-norm": Entry(lambda eta: descent(eta, olx.mirrors.pnorm(1.5)), {"eta": 0.5}),
    "hyperbolic entropy": Entry(
        lambda eta, beta: descent(eta / beta, olx.mirrors.hypentropy(beta)),
        {"eta": 0.5, "beta": 0.5},
    ),
    "signed entropy": Entry(
        lambda eta, total: descent(eta, olx.mirrors.signed_entropy(total)),
        {"eta": 0.02, "total": 20.0},
    ),
}


class Sequence(NamedTuple):
    """What a network sees, and what it is asked."""

    rows: Any  # (T, m), or (T,) of symbols
    target: Any
    asked: Any  # (T,), 1 where there is a question


class Task(NamedTuple):
    """Sequences for training and for tests."""

    inputs: int  # the length of a row, or the number of symbols
    outputs: int
    symbols: bool
    draw: Callable[..., Sequence]  # so many sequences, for training or of a level
    levels: dict[str, int]
    loss: Callable[[Array, Array], Array]  # of one output and its target
    measure: Callable[[Array, Array], Array]
    unit: str


class Sizes(NamedTuple):
    """How long a training is."""

    steps: int = 1000
    batch: int = 16
    tests: int = 256  # sequences
    rate: float = 0.02
    seeds: int = 3


def recall(most: int, times: int = 1) -> Task:
    """Up to `most` keys of 32, each shown `times` times with one of 32 values; the last counts."""
    levels = [most >> i for i in range(min(3, most.bit_length()))][::-1]
    shows = most * times

    def draw(rng: np.random.Generator, count: int, pairs: Any) -> Sequence:
        pairs = rng.choice(levels, (count, 1)) if pairs is None else np.full((count, 1), pairs)
        keys = np.argsort(rng.random((count, SYMBOLS)))[:, :most]
        values = rng.integers(SYMBOLS, size=(count, shows))
        ends, turns = pairs * times, np.arange(shows)
        turn = np.argsort(rng.random((count, shows)) + (turns >= ends)) % pairs
        mine = (turn[:, None] == np.arange(most)[:, None]) & (turns < ends)[:, None]
        answers = np.take_along_axis(values, np.argmax(mine * (turns + 1), 2), 1)
        order = np.argsort(rng.random((count, most)) + (np.arange(most) >= pairs))
        place = np.arange(2 * shows + most)
        here = np.take_along_axis(order, np.clip(place - 2 * ends, 0, most - 1), 1)
        shown = np.stack([np.take_along_axis(keys, turn, 1), SYMBOLS + values], 2)
        shown = shown.reshape(count, -1)[:, np.minimum(place, 2 * shows - 1)]
        asked = (place >= 2 * ends) & (place < 2 * ends + pairs)
        question = np.where(asked, np.take_along_axis(keys, here, 1), 2 * SYMBOLS)
        symbol = np.where(place < 2 * ends, shown, question)
        return Sequence(symbol, np.take_along_axis(answers, here, 1), np.float32(asked))

    right = lambda out, target: jnp.argmax(out) == target
    named = {f"{pairs} keys": pairs for pairs in levels}
    return Task(2 * SYMBOLS + 1, SYMBOLS, True, draw, named, cross_entropy, right, "accuracy")


def regression(examples: int) -> Task:
    """Examples of a linear function, which changes from sequence to sequence."""

    def draw(rng: np.random.Generator, count: int, seen: int | None) -> Sequence:
        truth = rng.normal(size=(count, FEATURES, 1)) / FEATURES**0.5
        x = rng.normal(size=(count, examples, FEATURES))
        y = (x @ truth)[..., 0] + NOISE * rng.normal(size=(count, examples))
        last = np.concatenate([np.zeros((count, 1)), y[:, :-1]], 1)
        place = np.arange(examples)
        asked = np.broadcast_to(place > 0 if seen is None else place == seen, y.shape)
        rows = np.concatenate([x, last[..., None]], 2)
        return Sequence(np.float32(rows), np.float32(y), np.float32(asked))

    squared = lambda out, target: (out[0] - target) ** 2
    levels = {f"{seen} examples": seen for seen in (examples // 4, examples // 2, examples - 1)}
    return Task(FEATURES + 1, 1, False, draw, levels, squared, squared, "squared error")


def characters(window: int) -> Task:
    """The next character of the topics of the documentation of Python."""
    text = "\n".join(topics[name] for name in sorted(topics))
    symbols, codes = np.unique(list(text), return_inverse=True)
    size, border = len(symbols), len(codes) * 9 // 10

    def draw(rng: np.random.Generator, count: int, low: int | None) -> Sequence:
        part = codes[:border] if low is None else codes[low:]
        start = rng.integers(len(part) - window, size=(count, 1))
        seen = part[start + np.arange(window + 1)]
        return Sequence(seen[:, :-1], seen[:, 1:], np.ones((count, window), np.float32))

    bits = lambda out, target: cross_entropy(out, target) / math.log(2)
    levels = {"unseen text": border}
    return Task(size, size, True, draw, levels, cross_entropy, bits, "bits per character")


def cross_entropy(out: Array, target: Array) -> Array:
    return optax.softmax_cross_entropy_with_integer_labels(out, target)


def first_weights(entry: Entry, task: Task, state: int, seed: int) -> dict[str, Any]:
    """Random weights of a network with keys of length `state`."""
    rng, joined = np.random.default_rng(seed), 2 * state + VALUES
    draw = lambda n, m: np.float32(rng.normal(size=(n, m)) / n**0.5)
    inward = draw(task.inputs, WIDTH) * (task.inputs**0.5 if task.symbols else 1.0)
    filters = 0.5 * draw(FILTER, joined) + np.eye(FILTER, dtype=np.float32)[:, -1:]
    return {
        "inward": np.float32(inward),
        "mixed": draw(WIDTH, joined),
        "filter": filters,
        "gate": draw(WIDTH, 2),
        "outward": draw(VALUES, task.outputs),
        "direct": draw(FILTER * WIDTH, task.outputs),
        "numbers": {name: np.float32(np.log(value)) for name, value in entry.numbers.items()},
    }


def network(entry: Entry, weights: dict[str, Any], rows: Array) -> Array:
    """The outputs of the tokens of a sequence."""
    x = weights["inward"][rows] if rows.ndim == 1 else rows @ weights["inward"]
    direct = jnp.concatenate(shifted(x, FILTER), 1) @ weights["direct"]
    if entry.make is None:
        return direct
    mixed = x @ weights["mixed"]
    mixed = jnp.asarray(sum(map(jnp.multiply, weights["filter"], shifted(mixed, FILTER))))
    keys, queries, values = jnp.split(mixed, ((mixed.shape[1] - VALUES) // 2 * np.arange(1, 3)), 1)
    gate, keep = (x @ weights["gate"]).T
    layer = entry.make(**jax.tree.map(jnp.exp, weights["numbers"]))
    numbers = {"keep": jax.nn.sigmoid(keep + 4)} if entry.keep else None
    out, _ = layer(unit(keys), values, unit(queries), numbers=numbers, weights=jax.nn.sigmoid(gate))
    return out @ weights["outward"] + direct


def shifted(rows: Array, width: int) -> list[Array]:
    """The rows 0 to `width` - 1 tokens ago; the last entry is the token itself."""
    long = jnp.concatenate([jnp.zeros((width - 1, rows.shape[1]), rows.dtype), rows])
    return [long[i : i + len(rows)] for i in range(width)]


def unit(rows: Array) -> Array:
    return rows * lax.rsqrt(jnp.sum(rows**2, -1, keepdims=True) + 1e-6)


def mean_of(function: Callable, entry: Entry, weights: PyTree, sequences: Sequence) -> Array:
    """The mean of a function of output and target over all questions."""
    outputs = jax.vmap(lambda rows: network(entry, weights, rows))(sequences.rows)
    each = jax.vmap(jax.vmap(function))(outputs, sequences.target)
    return jnp.sum(each * sequences.asked) / jnp.sum(sequences.asked)


class Data(NamedTuple):
    """What one training sees; all layers see the same."""

    train: Sequence  # with axes of steps and of a batch
    tests: Sequence  # with axes of levels and of sequences


def data(task: Task, sizes: Sizes, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    shape = sizes.steps, sizes.batch
    train = task.draw(rng, math.prod(shape), None)
    train = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), train)
    tests = [task.draw(rng, sizes.tests, level) for level in task.levels.values()]
    return Data(train, stacked(tests))


def stacked(trees: list) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def trained(entry: Entry, task: Task, sizes: Sizes, weights: PyTree, data: Data) -> Array:
    """The measure at each level after one training."""
    rate = optax.cosine_decay_schedule(sizes.rate, sizes.steps)
    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def step(carry: tuple, sequences: Sequence) -> tuple[tuple, None]:
        weights, moments = carry
        slopes = jax.grad(lambda weights: mean_of(task.loss, entry, weights, sequences))(weights)
        change, moments = adam.update(slopes, moments, weights)
        return (optax.apply_updates(weights, change), moments), None

    (weights, _), _ = lax.scan(step, (weights, adam.init(weights)), data.train)
    return lax.map(lambda tests: mean_of(task.measure, entry, weights, tests), data.tests)


class Row(NamedTuple):
    """One number of the tables; the fields are those of `HEAD`."""

    task: str
    layer: str
    form: str
    state: int
    measure: str
    mean: float
    error: float
    seeds: int


def form_of(entry: Entry, state: int) -> str:
    if entry.make is None:
        return "none"
    return entry.make(**entry.numbers).form(jnp.zeros((VALUES, state)))


def compared(task: str, made: Task, drawn: Data, layer: str, state: int, sizes: Sizes) -> list[Row]:
    """The rows of a layer on a task: all seeds are one program."""
    entry = LAYERS[layer]
    weights = [first_weights(entry, made, state, seed) for seed in range(sizes.seeds)]
    play = jax.jit(jax.vmap(lambda *given: trained(entry, made, sizes, *given)))
    form, size = form_of(entry, state), 0 if entry.make is None else state * VALUES
    found = dict(zip(made.levels, np.asarray(play(stacked(weights), drawn), float).T, strict=True))
    error = lambda each: float(np.std(each, ddof=1) / len(each) ** 0.5) if len(each) > 1 else np.nan
    return [
        Row(task, layer, form, size, f"{made.unit}, {name}", each.mean(), error(each), len(each))
        for name, each in found.items()
    ]


class Cost(NamedTuple):
    """What the loss of a sequence and its gradient cost."""

    layer: str
    form: str
    tokens: int
    microseconds: float  # of CPU, per token
    kilobytes: float  # of working memory


def cost(layer: str, tokens: int, state: int) -> Cost:
    entry = LAYERS[layer]
    assert entry.make is not None
    made, draw = entry.make(**entry.numbers), np.random.default_rng(0)
    keys, queries = draw.normal(size=(2, tokens, state)).astype(np.float32)
    values = draw.normal(size=(tokens, VALUES)).astype(np.float32)

    def loss(keys: Array, values: Array, queries: Array) -> Array:
        outputs, _ = made(unit(keys), values, unit(queries), weights=jnp.full(tokens, 0.5))
        return jnp.mean(outputs**2)

    slopes = jax.jit(jax.grad(loss, (0, 1, 2)))
    compiled = slopes.lower(keys, values, queries).compile()
    seconds = []
    for _ in range(6):
        start = time.process_time()
        jax.block_until_ready(compiled(keys, values, queries))
        seconds.append(time.process_time() - start)
    memory = compiled.memory_analysis()
    assert memory is not None  # XLA states it on every platform
    form = form_of(entry, state)
    return Cost(
        layer, form, tokens, 1e6 * min(seconds[1:]) / tokens, memory.temp_size_in_bytes / 1024
    )


def tables(rows: list[Row], costs: list[Cost]) -> str:
    """One table of Markdown per task and state, and one of costs."""
    parts = []
    for task, state in dict.fromkeys((one.task, one.state) for one in rows if one.state):
        own = [one for one in rows if one.task == task and one.state in (0, state)]
        measures = list(dict.fromkeys(one.measure for one in own))
        by_layer: dict[tuple[str, str], list[str]] = {}
        for one in own:
            shown = plus_minus(one.mean, one.error)
            by_layer.setdefault((one.layer, one.form), []).append(shown)
        lines = ([*names, *numbers] for names, numbers in by_layer.items())
        title = f"## {task}: a state of {state} numbers, {own[0].seeds} seeds"
        parts += [title, output.table(["layer", "form", *measures], lines, 2)]
    head = ["layer", "form", "tokens", "microseconds per token", "memory in kB"]
    lines = (
        [one.layer, one.form, str(one.tokens), f"{one.microseconds:.2f}", f"{one.kilobytes:.0f}"]
        for one in costs
    )
    if costs:
        parts += ["## Time and memory of a gradient", output.table(head, lines, 2)]
    return "\n\n".join(parts)


def draw(rows: list[Row], path: Path) -> None:
    """A panel for each task and state."""
    panels = list(dict.fromkeys((one.task, one.state) for one in rows if one.state))
    figure = output.figure(3.4 * len(panels), 4.4) if panels else None
    if figure is None:
        return
    for axes, (task, state) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        own = [one for one in rows if one.task == task and one.state in (0, state)]
        for number, layer in enumerate(dict.fromkeys(one.layer for one in own)):
            mine = [one for one in own if one.layer == layer]
            axes.errorbar(
                [one.measure.partition(", ")[2].split()[0] for one in mine],
                [one.mean for one in mine],
                [one.error for one in mine],
                fmt="osD^v"[number % 5] + "-",
                ms=4,
                color=f"C{number % 10}" if number < 10 else "k",
                label=layer,
            )
        unit, _, asked = own[0].measure.partition(", ")
        axes.set(title=f"{task}, state {state}", ylabel=unit, xlabel=asked.split()[-1])
        axes.set_yscale("log" if unit == "squared error" else "linear")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def save(rows: list[Row], costs: list[Cost], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (out / "associative_recall.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    (out / "associative_recall.md").write_text(tables(rows, costs) + "\n")
    draw(rows, out / "associative_recall.png")


def main(words: list[str] | None = None) -> None:
    parser = output.arguments(__doc__, out="associative_recall")
    tasks = ("recall", "changing", "regression", "characters")
    parser.add_argument("--tasks", nargs="*", choices=tasks, default=list(tasks))
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--keys", type=int, nargs="+", default=[8, 16], help="their lengths")
    parser.add_argument("--steps", type=int, default=Sizes().steps, help="of each training")
    parser.add_argument("--seeds", type=int, default=Sizes().seeds)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, which show nothing")
    given = parser.parse_args(words)
    sizes, keys, tokens = Sizes(given.steps, seeds=given.seeds), given.keys, 512
    made = {"recall": recall(PAIRS), "changing": recall(CHANGING, TIMES)}
    made["regression"] = regression(EXAMPLES)
    if given.quick:
        sizes, keys, tokens = Sizes(3, 2, 2, seeds=2), [2, 4], 16
        made = {"recall": recall(2), "changing": recall(2, 2), "regression": regression(8)}
    rows: list[Row] = []
    for name in given.tasks:
        task = made[name] if name in made else characters(8 if given.quick else WINDOW)
        drawn = stacked([data(task, sizes, seed) for seed in range(sizes.seeds)])
        for length in keys if name == "recall" else keys[-1:]:
            for layer in given.layers:
                if LAYERS[layer].make is None and any(row.task == name for row in rows):
                    continue  # it has no state, so one length of keys is enough
                found = compared(name, task, drawn, layer, length, sizes)
                shown = (plus_minus(one.mean, one.error) for one in found)
                spent = f"{time.process_time():.0f} s"
                print(spent, *found[0][:4], *shown, sep=" | ", flush=True)
                rows += found
            save(rows, [], given.out)
    costs = [cost(each, tokens, keys[-1]) for each in given.layers if LAYERS[each].make]
    save(rows, costs, given.out)
    print(f"\n{tables(rows, costs)}\n\nwritten: {given.out}/associative_recall.*")


if __name__ == "__main__":
    main()
