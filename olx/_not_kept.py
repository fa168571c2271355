"""What stands in a run for losses that were not kept."""

from typing import Any, NoReturn

import jax


class NotKept:
    """What a run with a rule holds in place of its losses; whoever uses it is told what to do."""

    def _refuse(self, *given: Any) -> NoReturn:
        raise TypeError(_NOT_KEPT)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_NOT_KEPT, name=name)

    def __repr__(self) -> str:
        return "not kept"

    __array__ = __jax_array__ = __getitem__ = __len__ = __iter__ = __float__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __radd__ = __rsub__ = __rmul__ = _refuse


_NOT_KEPT = (
    "run.losses: the losses of single rounds were not kept, since `keep` was given; `run.total` is "
    "their sum, `run.curve.total` the cumulative loss at the rounds `run.curve.at`. Play without "
    "`keep` to have them all."
)
NOT_KEPT = NotKept()
jax.tree_util.register_pytree_node(NotKept, lambda _: ((), None), lambda *_: NOT_KEPT)
