"""Learners as estimators of river, for rows that are dictionaries; needs river."""

try:
    import river as _river  # noqa: F401
except ImportError as error:
    raise ImportError(
        "olx.interop.river: river is not installed; install it, as `pip install river`."
    ) from error

from olx.interop.river.estimators import OnlineClassifier as OnlineClassifier
from olx.interop.river.estimators import OnlineRegressor as OnlineRegressor
