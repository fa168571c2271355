r"""Choose the numbers of a learner by its total loss on a stream.

$$\min_{\lambda}\; \sum_{t \le T} \ell_t(w_t(\lambda)), \qquad \lambda \in
  [\mathrm{low}_1, \mathrm{high}_1] \times \dots \times [\mathrm{low}_n, \mathrm{high}_n].$$

`by_halving` plays many configurations on a prefix of the stream and lets the best of them go on.
`by_gradient` descends along the exact gradient through the whole run. `both` does one after the
other, and is the one to try first.

All take `(make, loss, rounds, params)`, the order of `olx.run`, with a function `make` of the
numbers in place of the learner. `over` names each number and its range: a pair `(low, high)`, or
`uniform(low, high)` or `loguniform(low, high)`. They give a `Tuned`.

The numbers are the best in hindsight. Tune on one stream and play on another.
"""

from olx.tune.gradient import both as both
from olx.tune.gradient import by_gradient as by_gradient
from olx.tune.halving import by_halving as by_halving
from olx.tune.problem import Range as Range
from olx.tune.problem import Trial as Trial
from olx.tune.problem import Tuned as Tuned
from olx.tune.problem import loguniform as loguniform
from olx.tune.problem import uniform as uniform
