"""Every bad input is refused by name: no silent answer, no foreign traceback, no abort.

The tables are the dictionaries `BAD` of the modules `tests/refusals/bad_*.py`.
"""

import importlib
import re
from pathlib import Path

import pytest

TABLES = sorted(
    path.stem for path in Path(__file__).parent.glob("bad_*.py") if path.stem != "bad_inputs"
)
ROWS = {
    f"{table}: {name}": bad
    for table in TABLES
    for name, bad in importlib.import_module(table).BAD.items()
}
FOREIGN = re.compile(r"Tracer|Traceback|PyTreeDef\(Custom| at 0x[0-9a-f]{6}")  # of the inside


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_input_is_refused_by_name(name):
    bad = ROWS[name]
    with pytest.raises(bad.error, match=bad.says) as refusal:
        bad.call()
    said = str(refusal.value)
    assert re.search(bad.remedy, said), said
    assert not FOREIGN.search(said), said


def test_there_are_many_bad_inputs_of_python_and_of_the_command():
    """The remedy of at least 200 calls from Python is tested; those of a config are in `says`."""
    assert sum(bool(bad.says and bad.remedy) for bad in ROWS.values()) >= 200
    assert sum(name.startswith(("bad_configs", "bad_files")) for name in ROWS) >= 200
