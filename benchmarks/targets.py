"""The speed targets of olx on the CPU.

A number is time of the other library / time of olx, unless its comment says otherwise.
"""

SKLEARN, VOWPAL, RIVER, NUMBA = "scikit-learn", "Vowpal", "river", "numba"

# Targets against scikit-learn are for float32 and no penalty, which the suite races. Earlier ones
# were set against its default penalty, which takes 1.5 times as long. A kernel written by hand in
# JAX reaches 3.1, 2.9, 3.6 and 4.7 at 10, 50, 200 and 1,000 features.

# by number of features, OGD with the hinge loss
DENSE = {10: 2.0, 50: 2.0, 200: 3.0, 1000: 3.8}  # on arrays of the device
FROM_NUMPY = {10: 1.5, 50: 1.5, 200: 4.0, 1000: 6.0}  # on arrays of NumPy, float32,
FROM_NUMPY_FLOAT64 = {10: 1.2, 50: 1.2, 200: 1.5, 1000: 2.0}  # and float64
DENSE_OTHERS = 1.8  # PA, Perceptron and the logistic loss, at any number of features
DENSE_VOWPAL = 10.0
DENSE_RIVER = {10: 200, 50: 200, 200: 300, 1000: 400}
DICTIONARIES = 1.0  # `learn_one` of the estimators for river, also after predictions
DENSE_NUMBA = {200: 0.65, 1000: 0.65}  # the kernel alone reaches 0.7 to 0.75

OVERHEAD = 1.15  # time of the kernel of olx / of a JAX loop by hand; of `run` / of its kernel
# microseconds of a call: 1,000 rounds of 10 features, 8 configurations; a step at 50 features
CALL = {"olx.run": 150.0, "olx.sweep": 250.0, "olx.step": 25.0}
CERTIFY = 2.0  # time of `certify` on a stream / of `run`, with all theorems of the learner
LAYER, LAYER_MEMORY = 6.0, 15.0  # plain scan / chunks: time, and memory of the backward pass
ROLLOUT = 5000.0  # microseconds of CPU of another call of `rollout`, 300 rounds, not in `jit`

SPARSE = {
    "OGD hinge": {SKLEARN: 1.05, VOWPAL: 4.0, RIVER: 80},
    "AdaGrad hinge": {SKLEARN: 1.05, VOWPAL: 2.5},
}

FROM_CSR = {"OGD hinge": {SKLEARN: 0.8}, "AdaGrad hinge": {}}  # conversion included

SPARSE_SWEEP = {"OGD hinge": 8.0}  # 64 configurations, against 64 runs of scikit-learn

# by number of configurations, at 50 features, on two cores
SWEEP = {
    8: {SKLEARN: 10},
    64: {SKLEARN: 18, VOWPAL: 50},
    512: {SKLEARN: 36, VOWPAL: 80, RIVER: 3000},
    4096: {SKLEARN: 40},
}

CLASSES = 2.5  # multiclass PA-I at 784 features and 10 classes
ONE_VS_REST = 10.0  # one against the rest at 16 features and 26 classes, against OneVsRest

HEDGE = 2.0  # against the numba loop
HEDGE_FLOOR = 3.0  # time of olx / time of one pass over memory, from 10,000 experts on
DERIVED = 1.3  # time of the derived form / time of the hand-written one
FIRST_ORDER = 2.0  # time of a learner / time of PA-I at the same width
ADA_NORMAL_HEDGE = 2.5  # time of AdaNormalHedge / time of Hedge
SECOND_ORDER = {"arow": 1.0, "arow_original": 1.2, "diagonal_arow": 0.8}  # against the numba loop
SECOND_ORDER_SWEEP = 10.0  # 64 configurations at 48 features, against 64 calls of the numba loop
OJA = 3.0  # m = 10 at 1,000 features, against Vowpal Wabbit
BOOSTING = 10.0  # 100 copies by Online BBM at 50 features, against Vowpal Wabbit
BATCH_BOOSTING = 5.0  # AdaBoost with stumps on binary features, against scikit-learn
BOOSTING_SWEEP = 50.0  # 64 configurations of them, per configuration, against Vowpal Wabbit
COPIES = 1.2  # time of n copies / n times the time of the weak learner, up to 64 features
MANY_COPIES = 0.5  # the same for 100 copies
VITERBI = 20.0  # against a NumPy loop over chains
LAB = 1.5  # time of the lab for a sweep / time of the engine
CSV = 1.2  # time of the lab for 200,000 x 20 numbers in a CSV file / time of pandas
COMPILE_SECONDS = 2.0
COMPILE_SPREAD = 2.0  # slowest / fastest compilation of one learner, over lengths and widths
LARGE = 1.0  # GB of resident memory at most, for a problem that is larger
# time of a stream / of arrays; of 100,000 configurations / of 4,096; for many columns / few, beside
# the same ratio of the numba loop, which shows what the caches of the processor cost
LARGE_SPEED = 1.15
AGREEMENT = 1e-3  # largest difference of scores from those of the numba loop, early in the stream


def dense(algorithm: str, width: int, peer: str, on_device: bool) -> float | None:
    """The target of a stream of dense rows; the time from NumPy is judged for OGD alone."""
    if peer == SKLEARN and algorithm == "OGD hinge":
        return (DENSE if on_device else FROM_NUMPY).get(width)
    bounds = {
        SKLEARN: DENSE_OTHERS,
        VOWPAL: DENSE_VOWPAL,
        RIVER: DENSE_RIVER.get(width),
        NUMBA: DENSE_NUMBA.get(width),
    }
    return bounds.get(peer) if on_device else None
