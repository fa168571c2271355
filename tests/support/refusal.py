"""What a refused call says."""

import pytest


def said(act, kind):
    """The message of the error of type `kind` that `act` raises."""
    with pytest.raises(kind) as refusal:
        act()
    return str(refusal.value)
