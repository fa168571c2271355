"""What a run records per round; pass one of these, or a function of your own, as `record`."""

from jaxtyping import PyTree

from olx.core import Feedback, Trace


def trace(state: PyTree, feedback: Feedback) -> Trace:
    """Keep what bounds and certificates need."""
    return Trace(state, feedback)


def actions(state: PyTree, feedback: Feedback) -> PyTree:
    """Keep the actions."""
    return feedback.action
