"""The one rule by which tests find data sets: they are in the folder that OLX_DATA names.

A test that needs a file of this folder is marked `needs(file)`, and is skipped where the folder or
the file is missing. The data of scikit-learn need no rule: they come with it.
"""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("OLX_DATA") or os.devnull)  # no file lies below os.devnull


def there(*names: str) -> bool:
    """Whether all these files are in the folder."""
    return all((FOLDER / name).is_file() for name in names)


def reason(*names: str) -> str:
    """Which of these files are missing, and how to say where they are."""
    missing = ", ".join(name for name in names if not there(name))
    place = "OLX_DATA" if os.environ.get("OLX_DATA") else "OLX_DATA, which is not set"
    return f"needs {missing} in the folder named by {place}"


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip the test where one of these files is missing."""
    return pytest.mark.skipif(not there(*names), reason=reason(*names))
