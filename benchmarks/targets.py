"""The speed targets of olx on the CPU.

A number is time of the other library / time of olx, unless its comment says otherwise.
"""

from typing import NamedTuple


class Target(NamedTuple):
    bound: float
    at_least: bool

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(bound: float | None) -> Target | None:
    return None if bound is None else Target(bound, True)


def at_most(bound: float | None) -> Target | None:
    return None if bound is None else Target(bound, False)


SKLEARN, VOWPAL, RIVER, NUMBA = "scikit-learn", "Vowpal", "river", "numba"

# by number of features, on arrays of the device
DENSE = {
    10: {SKLEARN: 2.2, VOWPAL: 12, RIVER: 200},
    50: {SKLEARN: 2.2, VOWPAL: 10, RIVER: 200},
    200: {SKLEARN: 4.5, VOWPAL: 20, RIVER: 300},
    1000: {SKLEARN: 5, VOWPAL: 18, RIVER: 400, NUMBA: 0.75},
}
DENSE_HIGHER = {("Perceptron", 50, SKLEARN): 2.8, ("OGD hinge", 50, SKLEARN): 2.8}
FROM_NUMPY = {SKLEARN: 1.7}  # end to end, chunked, for any number of features

SPARSE = {
    "OGD hinge": {SKLEARN: 1.05, VOWPAL: 4.5, RIVER: 80},
    "AdaGrad hinge": {VOWPAL: 2.5},
}

# by number of configurations, at 50 features
SWEEP = {
    8: {SKLEARN: 8},
    64: {SKLEARN: 18, VOWPAL: 50},
    512: {SKLEARN: 22, VOWPAL: 80, RIVER: 3000},
    4096: {SKLEARN: 25},
}

CLASSES = 2.5  # multiclass PA-I at 784 features and 10 classes
COPIES = 10.0  # one against the rest at 16 features and 26 classes, against OneVsRest

HEDGE = 2.0  # against the numba loop
HEDGE_FLOOR = 3.0  # time of olx / time of one pass over memory, from 10,000 experts on
DERIVED = 1.3  # time of the derived form / time of the hand-written one
FIRST_ORDER = 2.0  # time of a learner / time of PA-I at the same width
ADA_NORMAL_HEDGE = 2.5  # time of AdaNormalHedge / time of Hedge
SECOND_ORDER = {"arow": 1.2, "arow_original": 1.2}  # against the numba loop
SECOND_ORDER_SWEEP = 10.0  # 64 configurations at 48 features, against 64 calls of the numba loop
OJA = 3.0  # m = 10 at 1,000 features, against Vowpal Wabbit
BOOSTING = 10.0  # 100 copies by Online BBM at 50 features, against Vowpal Wabbit
BATCH_BOOSTING = 5.0  # AdaBoost with stumps on binary features, against scikit-learn
BOOSTING_SWEEP = 50.0  # 64 configurations of them, per configuration, against Vowpal Wabbit
COPIES = 1.2  # time of n copies / n times the time of the weak learner, up to 64 features
MANY_COPIES = 0.5  # the same for 100 copies
VITERBI = 20.0  # against a NumPy loop over chains
LAB = 1.5  # time of the lab for a sweep / time of the engine
CSV = 1.5  # time of the lab for 200,000 x 20 numbers in a CSV file / time of pandas
COMPILE_SECONDS = 2.0
COMPILE_SPREAD = 2.0  # slowest / fastest compilation of one learner, over lengths and widths
AGREEMENT = 1e-3  # largest difference of scores from those of the numba loop, early in the stream


def dense(algorithm: str, width: int, peer: str, on_device: bool) -> Target | None:
    own = DENSE.get(width, {}).get(peer)
    own = DENSE_HIGHER.get((algorithm, width, peer), own)
    return at_least(own if on_device else FROM_NUMPY.get(peer, own))
