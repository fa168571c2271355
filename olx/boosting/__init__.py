"""Boosting: many copies of a weak learner vote, in the batch game and online."""
