"""Regularizers that change over time, for `ftrl` and `optimistic`."""

from olx.regularizers.adagrad import adagrad as adagrad
from olx.regularizers.adagrad import full_adagrad as full_adagrad
from olx.regularizers.growing import composite as composite
from olx.regularizers.growing import constant as constant
from olx.regularizers.growing import growing as growing
from olx.regularizers.growing import largest_context as largest_context
from olx.regularizers.scale_invariant import scale_invariant_adagrad as scale_invariant_adagrad
from olx.regularizers.scale_invariant import scale_invariant_pnorm as scale_invariant_pnorm
