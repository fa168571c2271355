"""Fast weights as a module of flax (nnx); needs flax."""

try:
    import flax as _flax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "olx.interop.flax: flax is not installed; install it, as `pip install flax`."
    ) from error

from olx.interop.flax.mixer import Mixer as Mixer
