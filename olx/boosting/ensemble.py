r"""An ensemble of hypotheses: what boosting returns.

$$H(x) = \operatorname{sign} f(x), \qquad f(x) = \sum_t \alpha_t h_t(x), \qquad
  \text{margin } y f(x) / \sum_t |\alpha_t| .$$

The sign of 0 is $+1$. Errors count a vote of 0 for an example of label $-1$, as predictions do.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from olx import _check as check
from olx._pytree import pytree, static
from olx.boosting.weak import check_labels
from olx.core import Rounds


@pytree
class Ensemble:
    """Hypotheses that vote with their coefficients; a pytree."""

    hypotheses: tuple  # as the weak learner made them
    coefficients: Float[np.ndarray, " T"]
    predict_fn: Callable[..., Any] = static()  # (hypothesis, prepared rows) -> values
    prepare_fn: Callable[..., Any] = static()  # rows -> what `predict_fn` takes

    def __len__(self) -> int:
        return len(self.hypotheses)

    def each(self, rows: Any) -> Iterator[np.ndarray]:
        """The values of each hypothesis on the rows."""
        ready = self.prepare_fn(rows)
        return (np.asarray(self.predict_fn(one, ready), float) for one in self.hypotheses)

    def votes(self, rows: Any) -> Float[np.ndarray, " N"]:
        """f(x) of each row."""
        votes = np.zeros(())
        for a, values in zip(self.coefficients, self.each(rows), strict=True):
            votes = votes + a * values
        return votes

    def predict(self, rows: Any) -> Float[np.ndarray, " N"]:
        """-1 or +1 for each row."""
        return sign(self.votes(rows))

    def margins(self, rows: Any, labels: Any) -> Float[np.ndarray, " N"]:
        """The margin of each row, in [-1, 1]."""
        votes = self.votes(rows)
        labels = check_labels("Ensemble", labels, len(votes))
        return labels * votes / np.sum(np.abs(self.coefficients))

    def errors(self, rows: Any, labels: Any) -> Float[np.ndarray, " T"]:
        """The share of rows that the first t hypotheses classify wrongly, for each t."""
        votes, seen = np.zeros(()), []
        for a, values in zip(self.coefficients, self.each(rows), strict=True):
            labels, votes = check_labels("Ensemble", labels, len(values)), votes + a * values
            seen.append(np.mean(sign(votes) != labels))
        return np.array(seen)

    def first(self, rounds: int) -> "Ensemble":
        """The ensemble after the first rounds."""
        check.count("Ensemble.first", "rounds", rounds)
        if rounds > len(self):
            raise ValueError(f"Ensemble.first: there are {len(self)} rounds, got {rounds}.")
        part = self.hypotheses[:rounds], self.coefficients[:rounds]
        return Ensemble(*part, self.predict_fn, self.prepare_fn)

    def rounds(self, rows: Any, labels: Any) -> Rounds:
        """The rounds of the game on the training rows, to replay or certify it with a driver."""
        values = np.stack(list(self.each(rows)))
        return Rounds(None, check_labels("Ensemble", labels, values.shape[1]) * values)


def sign(votes: np.ndarray) -> np.ndarray:
    """-1 or +1; the sign of 0 is +1."""
    return np.where(votes >= 0, 1.0, -1.0)
