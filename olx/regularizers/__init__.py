"""Regularizers that change over time, for `ftrl` and `optimistic`."""

from olx.regularizers.adagrad import adagrad as adagrad
from olx.regularizers.composite import composite as composite
from olx.regularizers.constant import constant as constant
from olx.regularizers.full_adagrad import full_adagrad as full_adagrad
from olx.regularizers.growing import growing as growing
from olx.regularizers.largest_context import largest_context as largest_context
from olx.regularizers.scale_invariant_adagrad import (
    scale_invariant_adagrad as scale_invariant_adagrad,
)
from olx.regularizers.scale_invariant_pnorm import scale_invariant_pnorm as scale_invariant_pnorm
