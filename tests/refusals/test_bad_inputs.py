"""Every bad input is refused by name: no silent answer, no foreign traceback, no abort.

The tables are the dictionaries `BAD` of the modules `tests/refusals/bad_*.py`. Rows about the same
function, or the same part of a table, are one test; a failure lists the rows that fail.
"""

import importlib
import re
from pathlib import Path

import pytest

TABLES = sorted(
    path.stem for path in Path(__file__).parent.glob("bad_*.py") if path.stem != "bad_inputs"
)
ROWS = {table: importlib.import_module(table).BAD for table in TABLES}
OWNER = re.compile(r"(\w+)(?:[(:,]| with )")  # a row often begins with the function it calls
FOREIGN = re.compile(r"Tracer|Traceback|PyTreeDef\(Custom| at 0x[0-9a-f]{6}")  # of the inside

GROUPS: dict[str, dict] = {}
for table, rows in ROWS.items():
    for name, bad in rows.items():
        owner = OWNER.match(name)
        group = f"{table}: {owner[1]}" if owner else table
        GROUPS.setdefault(group, {})[name] = bad


def complaint(bad) -> str:
    """What is wrong with the refusal of a row; empty if it is right."""
    try:
        bad.call()
    except bad.error as refusal:
        said = str(refusal)
    except Exception as other:
        return f"{type(other).__name__} in place of {bad.error.__name__}: {other}"
    else:
        return f"no {bad.error.__name__}"
    for pattern in (bad.says, bad.remedy):
        if not re.search(pattern, said):
            return f"{pattern!r} is not in {said!r}"
    return f"words of the inside in {said!r}" if FOREIGN.search(said) else ""


@pytest.mark.parametrize("group", GROUPS)
def test_a_bad_input_is_refused_by_name(group):
    wrong = {name: words for name, bad in GROUPS[group].items() if (words := complaint(bad))}
    assert not wrong, "\n".join(f"{name}: {words}" for name, words in wrong.items())


def test_there_are_many_bad_inputs_of_python_and_of_the_command():
    """The remedy of at least 200 calls from Python is tested; those of a config are in `says`."""
    rows = [bad for table in ROWS.values() for bad in table.values()]
    assert sum(bool(bad.says and bad.remedy) for bad in rows) >= 200
    assert len(ROWS["bad_configs"]) + len(ROWS["bad_files"]) >= 200
