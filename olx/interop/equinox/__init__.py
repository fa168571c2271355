"""Fast weights as a module of equinox; needs equinox."""

try:
    import equinox as _equinox  # noqa: F401
except ImportError as error:
    raise ImportError(
        "olx.interop.equinox: equinox is not installed; install it, as `pip install equinox`."
    ) from error

from olx.interop.equinox.mixer import Mixer as Mixer
