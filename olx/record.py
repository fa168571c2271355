"""Functions for the argument `record` of a driver: what a run records per round."""

from jaxtyping import PyTree

from olx.core import Feedback, Trace


def trace(state: PyTree, feedback: Feedback) -> Trace:
    """Record the state and the feedback of each round, as `olx.certify` needs them."""
    return Trace(state, feedback)


def actions(state: PyTree, feedback: Feedback) -> PyTree:
    """Record the actions."""
    return feedback.action
