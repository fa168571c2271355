"""An interval whose ends may be numbers, arrays or traced values."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from olx import _check as check
from olx._refusal import RefusedValue
from olx._words import as_given


def ordered(low: Any, high: Any) -> Any:
    """`low`, refused if it exceeds `high`; if an end is traced, NaN instead of a refusal."""
    for name, end in (("low", low), ("high", high)):
        check.numbers(name, end)
    if isinstance(low, Tracer) or isinstance(high, Tracer):
        return as_given(jnp.where(low <= high, low, jnp.nan), low)
    if not np.all(np.asarray(low) <= np.asarray(high)):
        raise RefusedValue(f"`low` must not exceed `high`, got {low} and {high}.")
    return low
