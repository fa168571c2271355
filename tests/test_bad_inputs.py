"""Every bad input is refused by name: no silent answer, no foreign traceback, no abort.

The tables are the dictionaries `BAD` of the modules `tests/support/bad_*.py`.
"""

import importlib
from pathlib import Path

import pytest

TABLES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("support/bad_*.py")
    if path.stem != "bad_inputs"
)
ROWS = {
    f"{table}: {name}": bad
    for table in TABLES
    for name, bad in importlib.import_module(table).BAD.items()
}


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_input_is_refused_by_name(name):
    bad = ROWS[name]
    with pytest.raises(bad.error, match=bad.says):
        bad.call()
