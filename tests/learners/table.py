"""The whole table of learners."""

from cases import CASES
from cases_boosting import BOOSTING
from cases_experts import EXPERT, META
from cases_first_order import FIRST_ORDER
from cases_multiclass import MULTICLASS
from cases_ranking import RANKING
from cases_second_order import SECOND_ORDER
from cases_structured import STRUCTURED

TASKS = MULTICLASS | RANKING | STRUCTURED
TABLE = CASES | FIRST_ORDER | SECOND_ORDER | BOOSTING | TASKS | EXPERT | META

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

# Numbers or a map handed to the functions of another row, which is looked at instead.
ALIKE = {
    "omd ball",
    "omd box",
    "omd simplex",
    "omd pnorm",
    "omd hypentropy",
    "omd orthant entropy",
    "omd binary entropy",
    "omd unseen conjugate",
    "omd floored entropy",
    "omd tsallis",
    "omd log barrier",
    "omd schatten",
    "md euclidean",
    "md entropy, decaying",
    "ftrl constant",
    "ftrl composite l1",
    "ftrl growing",
    "ftrl adagrad",
    "ftrl leader",
    "optimistic adagrad",
    "optimistic md entropy",
    "p-norm perceptron",
    "winnow",
    "winnow, positive orthant",
    "winnow, balanced",
    "dual ascent, structured",
    "PA",
    "PA-II",
    "romma, aggressive",
    "random field",
    "EG",
    "strongly convex MD",
    "rda",
    "adagrad",
    "self-confident, entropy",
    "ada normal hedge, exponent",
    "majority",
    "adaboost",
    "gentleboost",
    "nh-boost",
    "multiclass perceptron, uniform",
    "multiclass p-norm perceptron",
    "multiclass EG",
    "multiclass PA",
    "multiclass PA-II",
    "multiclass aggressive, costs",
    "multiclass aggressive, squared",
    "multiclass aggressive, average",
    "multiclass aggressive, p-norm",
    "multiclass self-tuned",
    "multiclass SCW-I",
    "multiclass SCW-II",
    "softmax by dual ascent",
    "softmax regression",
    "softmax regression, adagrad",
    "one vs one",
    "output codes",
    "label ranking, conservative",
    "label ranking, aggressive",
    "label ranking, entropy, conservative",
    "instance ranking, largest",
    "rank rows",
    "dual ascent, signs",
    "ogd, adapted at once",
    "mix, algorithms",
    "dual ascent, own loss",
    "EG+-",
    "dual ascent, entropy",
}
EACH = [name for name in TABLE if name not in ALIKE]
