"""One bad argument at a time, over the public functions; each refusal names function and argument.

`TABLE` has a line per argument: the function, the argument, a call with the value, and the kinds of
bad values that it must refuse. Nothing is played, but for the bandits at the end.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow
from bad_inputs import Bad

import olx
from olx import (
    alignment,
    boosting,
    convex,
    experts,
    hindsight,
    keep,
    losses,
    meta,
    mirrors,
    multiclass,
    ranking,
    second_order,
    streams,
    structured,
    testing,
    tune,
)
from olx.convex import norms, sets
from olx.interop.river import OnlineClassifier, OnlineRegressor
from olx.lab.config import ConfigError, parse

KEY, X = jax.random.key(0), np.random.default_rng(0).normal(size=(6, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
ROUNDS, ZEROS, ONES = olx.Rounds(X, Y), jnp.zeros(3), np.ones(3)
LINE, EUCLIDEAN = olx.linear(olx.ogd(0.1)), mirrors.euclidean()
WORDS, WEAK = structured.chain(2, 3), boosting.stumps(X)
WAVE, LENGTHS = np.sin(np.arange(8000.0)), alignment.phone_lengths([[0, 1]], [[2, 3]], 2)
NOTE = alignment.Score([60.0], [0.0], [1.0])
SCORES, RELEVANT = jnp.array([2.0, 1.0, 0.5]), jnp.array([1.0, 0.0, 0.0])
FRAME = pyarrow.table({"a": [1.0, 2.0], "y": [1.0, -1.0]})

VALUES = {
    "none": None,
    "word": "1",
    "true": True,
    "nan": float("nan"),
    "inf": float("inf"),
    "minus": -1.0,
    "zero": 0.0,
    "half": 0.5,
    "large": 1e9,
    "complex": 1j,
    "empty": np.zeros(0),
    "list": [1.0, 2.0],
    "vector": np.array([1.0, 2.0]),
    "matrix": np.full((3, 3), np.nan),
    "words": np.array(["a", "b", "c"]),
    "objects": np.array([None, 1], object),
    "object": object(),
    "table": {},
    "function": olx.ogd,
    "learner": LINE,
}
NUMBER = "none word true nan complex vector object"
KEYS = "word half vector object function"
ARRAY = "none word empty words objects object learner"
LINES = [
    ("lp", "p", norms.lp, f"{NUMBER} inf minus zero half"),
    ("weighted_lp", "p", lambda v: norms.weighted_lp(v, ONES), f"{NUMBER} inf half"),
    ("weighted_lp", "weights", lambda v: norms.weighted_lp(2.0, v), f"{ARRAY} minus nan"),
    ("schatten_norm", "q", convex.schatten_norm, f"{NUMBER} inf minus zero"),
    ("slab", "v", lambda v: convex.slab(v, ONES, 0.0, 1.0), ARRAY),
    ("slab", "x", lambda v: convex.slab(ONES, v, 0.0, 1.0), f"{ARRAY} vector list"),
    ("slab", "low", lambda v: convex.slab(ONES, ONES, v, 1.0), "none word list object"),
    ("slab", "high", lambda v: convex.slab(ONES, ONES, 0.0, v), "none word list object"),
    ("slab", "inverse", lambda v: convex.slab(ONES, ONES, 0.0, 1.0, v), "none word vector objects"),
    (
        "slab_semidefinite",
        "matrix",
        lambda v: convex.slab_semidefinite(ONES, ONES, 0.0, 1.0, v),
        "none word half vector objects learner",
    ),
    ("capped_simplex", "v", lambda v: convex.capped_simplex(v, 0.5), ARRAY),
    (
        "capped_simplex",
        "cap",
        lambda v: convex.capped_simplex(ONES, v),
        f"{ARRAY} vector nan minus",
    ),
    ("subsimplex", "v", convex.subsimplex, f"{ARRAY} table"),
    ("weighted_l1_ball", "weights", lambda v: convex.weighted_l1_ball(ONES, v, 1.0), "none vector"),
    ("box", "low", lambda v: sets.box(v, 1.0), "none table empty learner objects"),
    ("box", "high", lambda v: sets.box(0.0, v), "none table empty learner objects"),
    (
        "add",
        "separable",
        lambda v: mirrors.add(EUCLIDEAN, EUCLIDEAN, separable=v),
        "none word half",
    ),
    ("shift", "center", lambda v: mirrors.shift(EUCLIDEAN, v), f"{ARRAY} nan inf matrix table"),
    ("precompose", "matrix", lambda v: mirrors.precompose(EUCLIDEAN, v), f"{ARRAY} matrix half"),
    ("leafwise", "maps", mirrors.leafwise, "none table half object"),
    ("quadratic", "curvature", mirrors.quadratic, "none table empty learner"),
    ("weighted_pnorm", "weights", lambda v: mirrors.weighted_pnorm(1.5, v), "none table learner"),
    ("adahedge", "low", lambda v: experts.adahedge(low=v), "word true nan inf list object learner"),
    ("squint", "high", lambda v: experts.squint(high=v), "word true nan inf list object learner"),
    ("prod", "prior", lambda v: experts.prod(0.3, v), "table empty learner objects"),
    ("drifting_game", "moves", lambda v: experts.drifting_game(jnp.abs, 3, moves=v), ARRAY),
    ("equivalence", "margin", olx.theorems.equivalence, f"{NUMBER} inf"),
    ("exp3_bound", "rounds", lambda v: experts.exp3_bound(0.1, v, 3), "none word minus zero nan"),
    ("exp3_bound", "arms", lambda v: experts.exp3_bound(0.1, 9, v), "none word half zero true"),
    ("exp3_step", "epsilon", lambda v: experts.exp3_step(9, 3, v), "word nan zero minus vector"),
    ("gibbs", "points", lambda v: experts.gibbs(0.1, v, KEY), f"{ARRAY} nan matrix"),
    ("particles", "points", lambda v: experts.particles(olx.hedge(0.1), v), f"{ARRAY} nan"),
    ("nearby_points", "low", lambda v: olx.theorems.nearby_points(0.1, v, 1.0), f"{ARRAY} nan"),
    ("nearby_points", "high", lambda v: olx.theorems.nearby_points(0.1, 0.0, v), f"{ARRAY} inf"),
    ("adaboost_ol", "key", boosting.adaboost_ol, KEYS),
    ("sigmoid_network", "key", lambda v: boosting.sigmoid_network(olx.ogd(0.1), key=v), KEYS),
    ("first_weights", "key", lambda v: boosting.first_weights(3, key=v), KEYS),
    ("span_regret", "apply", olx.theorems.span_regret, "none word half table list"),
    ("hull_stages", "apply", olx.theorems.hull_stages, "none word half table list"),
    ("greedy_regret", "apply", olx.theorems.greedy_regret, "none word half table list"),
    (
        "weak_learner",
        "rows",
        lambda v: boosting.weak_learner(max, min, v),
        "none half empty object",
    ),
    (
        "boost_with",
        "until_fitted",
        lambda v: boosting.boost_with(boosting.adaboost(), WEAK, Y, 3, until_fitted=v),
        "none word half",
    ),
    ("banditron_bound", "gamma", lambda v: multiclass.banditron_bound(v, 9, 3, 0, 1), NUMBER),
    (
        "banditron_bound",
        "k",
        lambda v: multiclass.banditron_bound(0.1, 9, v, 0, 1),
        "none half zero",
    ),
    ("banditron_bound", "size", lambda v: multiclass.banditron_bound(0.1, 9, 3, 0, v), "nan minus"),
    ("output_codes", "code", lambda v: multiclass.output_codes(LINE, v), f"{ARRAY} vector"),
    (
        "soft_confidence_weighted",
        "squared",
        lambda v: second_order.soft_confidence_weighted(squared=v),
        "none word half vector",
    ),
    ("spoken", "seed", streams.spoken, "none word true half minus object"),
    ("played", "noise", lambda v: streams.played(0, noise=v), "none word true nan inf minus"),
    ("from_arrays", "labels", lambda v: streams.from_arrays(X, Y, labels=v), "none half vector"),
    (
        "from_examples",
        "examples",
        lambda v: list(streams.from_examples(v)),
        "none word half object",
    ),
    ("from_loader", "loader", lambda v: list(streams.from_loader(v)), "none word half object"),
    ("from_frame", "features", lambda v: streams.from_frame(FRAME, "y", features=v), "word half"),
    ("from_frame", "labels", lambda v: streams.from_frame(FRAME, "y", labels=v), "none word half"),
    ("read_svmlight", "path", streams.read_svmlight, "none half object vector"),
    ("padded_rounds", "x", lambda v: structured.padded_rounds(v, [[0]]), "none word half object"),
    (
        "padded_rounds",
        "weight",
        lambda v: structured.padded_rounds([np.ones((2, 3))], [[0, 1]], weight=v),
        "word minus vector objects",
    ),
    ("group_rows", "rows", lambda v: ranking.group_rows(v, ONES, [3]), "none matrix words objects"),
    ("group_rows", "relevance", lambda v: ranking.group_rows(X, v, [6]), "none words objects word"),
    ("ndcg", "discount", lambda v: ranking.ndcg(SCORES, RELEVANT, discount=v), "none word half"),
    ("align", "start", lambda v: alignment.align(v, 1, 1), "none word true half minus object"),
    ("log_mel", "wave", lambda v: alignment.log_mel(v, 8000.0), f"{ARRAY} matrix"),
    ("log_mel", "rate", lambda v: alignment.log_mel(WAVE, v), f"{NUMBER} inf zero"),
    ("log_mel", "hop", lambda v: alignment.log_mel(WAVE, 8000.0, hop=v), f"{NUMBER} inf zero"),
    ("log_mel", "bands", lambda v: alignment.log_mel(WAVE, 8000.0, v), "none word true half zero"),
    (
        "semitones",
        "low",
        lambda v: alignment.semitones(WAVE, 8000.0, v),
        "none word true half large",
    ),
    (
        "semitones",
        "high",
        lambda v: alignment.semitones(WAVE, 8000.0, high=v),
        "none word half nan",
    ),
    (
        "speech_recording",
        "frames",
        lambda v: alignment.speech_recording(v, [0], np.zeros((4, 2)), LENGTHS),
        f"{ARRAY} vector matrix",
    ),
    (
        "speech_recording",
        "lengths",
        lambda v: alignment.speech_recording(X, [0], X[:, :2], v),
        "none word list object",
    ),
    (
        "speech_recording",
        "longest",
        lambda v: alignment.speech_recording(X, [0], X[:, :2], LENGTHS, v),
        "none word true half zero",
    ),
    (
        "music_recording",
        "bands",
        lambda v: alignment.music_recording(v, 36, NOTE),
        f"{ARRAY} matrix",
    ),
    ("music_recording", "score", lambda v: alignment.music_recording(X, 36, v), "none word list"),
    ("music_recording", "lowest", lambda v: alignment.music_recording(X, v, NOTE), "none word nan"),
    (
        "music_recording",
        "shortest",
        lambda v: alignment.music_recording(X, 36, NOTE, v),
        "nan minus",
    ),
    (
        "aligned_rounds",
        "recordings",
        lambda v: alignment.aligned_rounds(v, [[0]]),
        "none word half",
    ),
    (
        "interval_regret",
        "curve",
        lambda v: hindsight.interval_regret(v, 0, 1),
        f"{ARRAY} half matrix",
    ),
    ("interval_regret", "start", lambda v: hindsight.interval_regret(ONES, v, 2), "none word half"),
    ("interval_regret", "stop", lambda v: hindsight.interval_regret(ONES, 0, v), "none word half"),
    ("worst_interval", "curve", hindsight.worst_interval, f"{ARRAY} half matrix"),
    ("intervals", "sequence", hindsight.intervals, f"{ARRAY} half matrix"),
    ("quantile_regret", "regrets", lambda v: hindsight.quantile_regret(v, 0.5), f"{ARRAY} vector"),
    (
        "best_shifting_expert",
        "losses",
        lambda v: hindsight.best_shifting_expert(v, 1),
        "matrix none",
    ),
    ("variation", "us", hindsight.variation, f"{ARRAY} half table"),
    ("shifts", "us", hindsight.shifts, f"{ARRAY} half table"),
    ("upward_variation", "us", hindsight.upward_variation, f"{ARRAY} half"),
    (
        "edge_losses",
        "edges",
        lambda v: hindsight.edge_losses(losses.squared, ROUNDS, v),
        "zero half",
    ),
    ("averaged", "state", meta.averaged, "none word half learner"),
    ("stopped", "state", meta.stopped, "none word half learner"),
    ("candidates", "state", meta.candidates, "none word half learner"),
    ("averaged_weights", "state", structured.averaged_weights, "none word half learner"),
    (
        "validated",
        "loss",
        lambda v: meta.validated(np.zeros((2, 3)), v, ROUNDS, olx.dot),
        "none word half",
    ),
    (
        "validated",
        "candidates",
        lambda v: meta.validated(v, losses.squared, ROUNDS, olx.dot),
        "none word table learner",
    ),
    ("check_mirror", "mirror", lambda v: testing.check_mirror(v, ONES), "none word half function"),
    ("check_mirror", "theta", lambda v: testing.check_mirror(EUCLIDEAN, v), f"{ARRAY} matrix"),
    ("check_mirror", "key", lambda v: testing.check_mirror(EUCLIDEAN, ONES, key=v), KEYS),
    (
        "check_loss",
        "scores",
        lambda v: testing.check_loss(losses.hinge, v, ONES),
        f"{ARRAY} vector",
    ),
    ("uniform", "ends", lambda v: tune.uniform(v, 1.0), "none word nan object function"),
    ("every", "rounds", keep.every, "none word true half zero object function"),
]


def refused(owner, name, call, value):
    return Bad(lambda: call(value), (TypeError, ValueError), rf"^{owner}: .*\b{name}\b")


ARGUMENTS = {
    f"{owner}({name}) of {kind}": refused(owner, name, call, VALUES[kind])
    for owner, name, call, kinds in LINES
    for kind in dict.fromkeys(kinds.split())
}


def phones(phones, lengths, count=2):
    return lambda: alignment.phone_lengths(phones, lengths, count)


def estimator(kind):
    return OnlineClassifier(LINE) if kind == "classifier" else OnlineRegressor(LINE)


def measured(name, scores=SCORES, relevance=RELEVANT):
    return lambda: getattr(ranking, name)(scores, relevance)


MEASURES = ("mistake", "one_error", "coverage", "ranking_loss", "average_precision", "ndcg")
MEASURES += ("reciprocal_rank",)
PHONES = {
    "a phone that is none": Bad(
        phones([[0, 2]], [[2, 3]]), ValueError, "`phones` must be .*0 to 1"
    ),
    "a negative phone": Bad(phones([[0, -1]], [[2, 3]]), ValueError, "number the phones from 0"),
    "half a phone": Bad(phones([[0, 0.5]], [[2, 3]]), ValueError, "`phones` must be integers"),
    "phones in words": Bad(phones([["a", "b"]], [[2, 3]]), ValueError, "`phones` must be integers"),
    "a negative length": Bad(phones([[0, 1]], [[2, -3]]), ValueError, "`lengths` must be positive"),
    "a length of 0": Bad(phones([[0, 1]], [[2, 0]]), ValueError, "`lengths` must be positive"),
    "a length NaN": Bad(phones([[0, 1]], [[2, np.nan]]), ValueError, "`lengths` must be positive"),
    "fewer lengths than phones": Bad(phones([[0, 1]], [[2]]), ValueError, "one entry per event"),
    "no recordings of phones": Bad(phones([], []), ValueError, "one list of each per recording"),
    "no phones": Bad(phones([[0, 1]], [[2, 3]], 0), ValueError, "phone_lengths: `count` must be"),
    "pitches in the wrong order": Bad(
        lambda: alignment.semitones(WAVE, 8000.0, 80, 40), ValueError, "in this order.*80 and 40"
    ),
    "no bands": Bad(
        lambda: alignment.log_mel(WAVE, 8000.0, 0), ValueError, "log_mel: `bands` must"
    ),
    "a note that ends before it begins": Bad(
        lambda: alignment.music_recording(X, 36, alignment.Score([60.0], [1.0], [0.5])),
        ValueError,
        "music_recording: note 0 .*must end after it begins",
    ),
}
RANKS = {
    **{
        f"{name} of {what}": Bad(measured(name, **given), error, f"^{name}: .*{says}")
        for name in MEASURES
        for what, given, error, says in (
            ("scores NaN", {"scores": SCORES.at[1].set(jnp.nan)}, ValueError, "must be finite"),
            ("negative relevance", {"relevance": -2 * RELEVANT}, ValueError, "degree from 0 on"),
            ("relevance NaN", {"relevance": RELEVANT * jnp.nan}, ValueError, "degree from 0 on"),
            ("whole scores", {"scores": jnp.arange(3)}, TypeError, "array of numbers, got int"),
            (
                "a list of scores",
                {"scores": [1.0, 2.0, 3.0]},
                TypeError,
                "array of numbers, got li",
            ),
        )
    },
    "too few degrees": Bad(measured("ndcg", relevance=RELEVANT[:2]), TypeError, "ndcg: .*shape"),
}
CODES = {
    "a code of 0 and 1": Bad(
        lambda: multiclass.output_codes(LINE, np.array([[1, 0], [0, 1], [1, 1]])),
        ValueError,
        r"output_codes: `code` holds \[0.0, 1.0\]; it must hold 1 and -1",
        r"2 \* code - 1",
    ),
    "a code with a column of 0": Bad(
        lambda: multiclass.output_codes(LINE, np.array([[1, 0], [-1, 0]])),
        ValueError,
        "output_codes: column 1 ",
    ),
    "more finalists than configurations": Bad(
        lambda: tune.by_halving(
            lambda eta: olx.linear(olx.ogd(eta)),
            losses.squared,
            ROUNDS,
            ZEROS,
            over={"eta": (0.1, 1.0)},
            configurations=3,
            finalists=5,
        ),
        ValueError,
        "by_halving: `finalists` is 5, there are 3 configurations",
        "give at most as many finalists",
    ),
    "the cost of another chain": Bad(
        lambda: structured.decoded_cost(structured.chain(3, 3))(
            WORDS.parts(WORDS.zeros(), structured.Sequences(jnp.ones((2, 3)), jnp.asarray(2))),
            jnp.array([0, 1]),
        ),
        TypeError,
        "chain: the scores are of 2 labels, this chain has 3",
        "the same chain",
    ),
    "the loss of another chain": Bad(
        lambda: structured.max_loss(structured.chain(1, 3))(
            WORDS.parts(WORDS.zeros(), structured.Sequences(jnp.ones((2, 3)), jnp.asarray(2))),
            jnp.array([0, 1]),
        ),
        TypeError,
        "chain: the scores are of 2 labels, this chain has 1",
    ),
}
RIVER = {
    **{
        f"a river label {label!r}": Bad(
            lambda label=label: estimator("classifier").learn_one({"a": 1.0}, label),
            ValueError,
            "OnlineClassifier: `y` must be a label",
            "leave out rows",
        )
        for label in (None, float("nan"), [1], {})
    },
    **{
        f"a {type(row).__name__} as a row of a river {kind}": Bad(
            lambda kind=kind, row=row: estimator(kind).learn_one(row, True),
            TypeError,
            f"Online{kind.title()}: a row must be a dictionary",
            r"dict\(enumerate\(row\)\)",
        )
        for kind in ("classifier", "regressor")
        for row in ([1.0, 2.0], (1.0,), "ab", None, 5, X[0])
    },
}
UNKNOWN = np.array([[0.0, 1.0], [np.nan, np.nan], [0.0, 1.0]])
BANDITS = {
    f"{name}: NaN for the arm that was pulled": Bad(
        lambda driver=driver: driver(
            experts.exp3(0.5, KEY),
            experts.expected_loss,
            olx.Rounds(None, UNKNOWN),
            jnp.ones(2) / 2,
        ),
        ValueError,
        f"^{name}: bandit: the loss of the arm that is pulled must be known, .*row 1",
        "give the losses of all arms",
    )
    for name, driver in (("run", olx.run), ("rollout", olx.rollout))
}
DATA = {"name": "stream:linear_regression", "arguments": {"rounds": 9, "features": 2}}
EXPERIMENT = {"data": [DATA], "learners": [{"name": "ogd", "linear": True, "eta": 0.1}]}
CONFIGS = {
    f"a config with {key} = {value}": Bad(
        lambda key=key, value=value: parse({**EXPERIMENT, key: value}),
        ConfigError,
        f"{key}: {says}",
    )
    for key, value, says in (
        ("seeds", 10**9, "give at most 10,000"),
        ("seeds", 10**30, "give at most 10,000"),
        ("curve", 10**6, "give 1 to 10,000 points"),
        ("curve", -1, "give 1 to 10,000 points"),
    )
}
BAD = {**ARGUMENTS, **PHONES, **RANKS, **CODES, **RIVER, **BANDITS, **CONFIGS}
