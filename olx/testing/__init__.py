"""Conformance checks for your own learner, loss, mirror map or regularizer."""

from olx.testing.learner import check_learner as check_learner
from olx.testing.mirror import check_loss as check_loss
from olx.testing.mirror import check_mirror as check_mirror
from olx.testing.mirror import check_regularizer as check_regularizer
from olx.testing.mutants import check_mutants as check_mutants
from olx.testing.mutants import mutants as mutants
