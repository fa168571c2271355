"""The environment of a result: versions, devices, the commit of the code."""

import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

import olx

PACKAGES = ("olx", "jax", "jaxlib", "numpy", "scipy", "optax", "scikit-learn", "pyarrow")


def environment() -> dict[str, Any]:
    devices = jax.local_devices()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "backend": jax.default_backend(),
        "devices": [device.device_kind for device in devices],
        "commit": _commit(),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of a checkout, marked if files differ from it; None outside a checkout."""
    here = Path(olx.__file__).parent
    try:
        git = lambda *words: subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
        return git("rev-parse", "HEAD") + (
            " changed" if git("status", "--short", "--", ".") else ""
        )
    except (OSError, subprocess.SubprocessError):
        return None
