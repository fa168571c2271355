"""The whole table of learners."""

from cases import CASES
from cases_experts import EXPERT, META
from cases_first_order import FIRST_ORDER

TABLE = CASES | FIRST_ORDER | EXPERT | META

# One of every kind of state and program, for what does not depend on the algorithm.
KINDS = [
    "omd euclidean",
    "omd simplex",
    "omd unseen potential",
    "hedge",
    "omd density matrices",
    "md ball, decaying",
    "ftrl adagrad l1",
    "ftrl composite group",
    "optimistic from context",
    "optimistic md",
    "model",
    "dual ascent, window",
    "winnow, self-tuned",
    "PA-I",
    "ada normal hedge, sleeping",
    "ada normal hedge streaming",
    "bandit",
    "mix",
]
