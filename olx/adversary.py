"""The type of an adversary, who plays against a learner in `olx.play`."""

from collections.abc import Callable

from jaxtyping import PyTree

from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Loss


@pytree
class Adversary:
    """A player that chooses each outcome after it has seen the action of the learner."""

    hparams: PyTree
    loss: Loss  # (action, outcome) -> scalar, a pytree
    init_fn: Callable[..., PyTree] = static()  # (hparams) -> state
    ask_fn: Callable[..., PyTree] = static()  # (hparams, state) -> context
    answer_fn: Callable[..., PyTree] = static()  # (hparams, state, action) -> (outcome, state)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self) -> PyTree:
        return self.init_fn(self.hparams)

    def ask(self, state: PyTree) -> PyTree:
        return self.ask_fn(self.hparams, state)

    def answer(self, state: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
        return self.answer_fn(self.hparams, state, action)
