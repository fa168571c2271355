"""The notebooks are stored with their outputs, which the documentation shows."""

import pytest

from notebooks import store


@pytest.mark.parametrize("name", store.names())
def test_a_notebook_is_stored_with_its_outputs(name):
    assert store.problems(store.FOLDER / f"{name}.ipynb") == []


def test_what_is_wrong_with_stored_outputs_is_said(tmp_path):
    book = (store.FOLDER / f"{store.names()[0]}.ipynb").read_text()
    path = tmp_path / "book.ipynb"
    path.write_text(book.replace('"execution_count": 2,', '"execution_count": 5,'))
    assert store.problems(path) == ["its cells were not run once each, from the first to the last"]
    path.write_text(book.replace('"image/png"', '"image/none"') + " " * store.LARGEST)
    size, figure = store.problems(path)
    assert size.startswith("it has ")
    assert figure == "it shows no figure"
