r"""A loss of a real score, and what theory knows about it.

For a score $s$ and an outcome $y$ the record carries $\ell(s, y)$, its conjugate
$\ell^*(\tau, y) = \sup_s \tau s - \ell(s, y)$ (infinite outside its domain), its proximal map
$\arg\min_s\, c\,\ell(s, y) + \tfrac12 (s - v)^2$, and two constants in the score:

- Lipschitz: $|\ell'(s, y)| \le L$;
- self-bounded: $\tfrac12 \ell'(s, y)^2 \le L\,\ell(s, y)$.

With $s = \langle w, x \rangle$ the constants in $w$ are $L \|x\|_*$ and $L \|x\|_*^2$, and the
conjugate at $\tau x$ is $\ell^*(\tau, y)$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 3.
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, PyTree

from olx._pytree import pytree, static
from olx.core import Scalar
from olx.needs import Need


@pytree
class ScoreLoss:
    """Module-level functions and the numbers they share; call it as `loss(score, outcome)`.

    lipschitz, self_bound: constants in the score; None where there is none.
    """

    hparams: PyTree = None
    lipschitz: Scalar | None = None
    self_bound: Scalar | None = None
    value_fn: Callable[..., Array] = static(kw_only=True)  # (hparams, score, outcome)
    conjugate_fn: Callable[..., Array] | None = static(kw_only=True, default=None)
    # (hparams, tau, outcome)
    prox_fn: Callable[..., Array] | None = static(kw_only=True, default=None)
    # (hparams, step, center, outcome)
    needs: tuple[Need, ...] = static(kw_only=True, default=())  # what it needs of outcomes

    def __call__(self, score: Any, outcome: Any) -> Array:
        return self.value_fn(self.hparams, score, outcome)

    def conjugate(self, tau: Any, outcome: Any) -> Array:
        r"""$\sup_s \tau s - \ell(s, y)$."""
        if self.conjugate_fn is None:
            raise TypeError(
                f"{self.value_fn.__module__}: this loss comes with no conjugate; give "
                "`conjugate_fn`."
            )
        return self.conjugate_fn(self.hparams, tau, outcome)

    def prox(self, step: Any, center: Any, outcome: Any) -> Array:
        r"""$\arg\min_s$ `step` $\ell(s, y) + \tfrac12 (s - $ `center` $)^2$."""
        if self.prox_fn is None:
            raise TypeError(
                f"{self.value_fn.__module__}: this loss comes with no proximal map; give `prox_fn`."
            )
        return self.prox_fn(self.hparams, step, center, outcome)
