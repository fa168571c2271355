"""The packages of the extra `lab`: what to do if one of them is not installed."""

import functools
from collections.abc import Callable
from typing import Any

PACKAGES = ("msgspec", "pyarrow", "matplotlib", "jinja2", "pooch", "sklearn")


def remedy(error: ModuleNotFoundError) -> str | None:
    """What to install; None if the module is not of the lab."""
    name = (error.name or "").partition(".")[0]
    if name not in PACKAGES:
        return None
    return f"{name} is not installed; install the lab with pip install 'olx[lab]'."


def explained(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which says what to install if a package of the lab is missing."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except ModuleNotFoundError as error:
            if (said := remedy(error)) is None:
                raise
            raise ModuleNotFoundError(f"{function.__name__}: {said}", name=error.name) from None

    return called
