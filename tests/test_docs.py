"""The pages of the site: their code runs, their names exist, and their links lead somewhere."""

import importlib.util
import re
import subprocess
import sys

import pytest

from docs import pages, reference
from docs.build import CONCEPTS, howto
from docs.docstrings import linked, markdown, on_page_content
from docs.public import ROOT, factories, rooms

WRITTEN = sorted(pages.SOURCE.rglob("*.md"))
MADE = reference.algorithms()
WHERE = reference.places(MADE)
BUILT = all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings"))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The sources of the site without pictures."""
    folder = tmp_path_factory.mktemp("site") / "source"
    pages.write(folder, WHERE)
    reference.write(folder, MADE)
    return folder


@pytest.mark.skipif(BUILT, reason="the test that builds the site runs the code of all pages")
@pytest.mark.parametrize("name", ["index", *(f"howto/{name}" for name in howto())])
def test_the_code_of_a_page_runs(name):
    path = pages.SOURCE / f"{name}.md"
    pages.printed(pages.blocks(path.read_text()))


def test_every_page_is_in_the_navigation():
    named = {f"howto/{name}" for name in howto()} | {f"concepts/{name}" for name in CONCEPTS}
    named |= {"index", "which_learner", "benchmarks", "howto/index", "reference/index"}
    assert named == {str(path.relative_to(pages.SOURCE).with_suffix("")) for path in WRITTEN}


def test_names_on_pages_exist():
    for path in WRITTEN:
        for name in re.findall(r"`(olx\.[\w.]+)", pages.shown(path.read_text())):
            assert pages.exists(name), f"{path.name}: {name}"


def test_every_public_factory_has_a_page(source):
    for room, public in rooms().items():
        for one in factories(public):
            if reference.group_of(room, one) is None:
                continue
            file, anchor = WHERE[one.typed].split("#")
            text = (source / file).read_text()
            assert f"::: {anchor}\n    options:\n      heading: {one.typed}\n" in text
            assert f"`{one.typed}`" in (source / "algorithms/index.md").read_text()


def test_every_group_of_learners_is_known():
    rest = {"olx", "olx.facts", "olx.keep", "olx.lab", "olx.record", "olx.testing"}
    rest |= {"olx.convex.sets", "olx.theorems"}  # a theorem stands on the page of its rule
    assert set(rooms()) - rest <= set(reference.GROUPS)


def test_a_page_shows_rule_factory_theorem_and_state(source):
    """The signature and the example are written by mkdocstrings; see the test that builds."""
    text = (source / "algorithms/second_order/arow.md").read_text()
    for part in ("::: olx.second_order.arow\n", "heading: olx.second_order.arow\n"):
        assert part in text
    assert "| `updates_made` |" in text


def test_every_name_is_shown_once(source):
    shown = [
        name
        for path in source.rglob("*.md")
        for name in re.findall(r"^::: (\S+)$", path.read_text(), flags=re.M)
    ]
    assert len(shown) == len(set(shown))


def test_links_between_pages_resolve(source):
    """Pages made of other files are checked by the strict build."""
    elsewhere = (
        "notebooks/",
        "reproductions.md",
        "architecture.md",
        "contributing.md",
        "changelog.md",
        "pictures/",
    )
    for path in source.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", _without_code(path.read_text())):
            target = (path.parent / link).resolve()
            inside = str(target.relative_to(source.resolve()))
            assert target.exists() or inside.startswith(elsewhere), f"{path}: {link}"


def _without_code(text):
    return re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$", "", text, flags=re.S)


def test_docstrings_become_markdown():
    text = "Do it.\n\neta: positive;\n    small.\nkey: a key.\n\n>>> 1 + 1\n2"
    expected = "Do it.\n\n- **`eta`**: positive; small.\n- **`key`**: a key."
    assert markdown(text) == f"{expected}\n\n```pycon\n>>> 1 + 1\n2\n```"


def test_names_in_backquotes_become_links_outside_code():
    target = {"olx.run": "run.md"}.get
    text = "`olx.run` and `olx.none`\n```\n`olx.run`\n```"
    assert linked(text, target) == "[`olx.run`](run.md) and `olx.none`\n```\n`olx.run`\n```"


def test_a_page_shows_what_its_code_prints(tmp_path):
    text = "```python\nx = 20\n```\nThen\n```python\nprint(x + 1)\n```\n"
    wanted = text + '\n```text title="output"\n21\n```\n'
    assert pages.with_outputs(text, tmp_path) == wanted
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text().replace("21", "22"))
    assert pages.with_outputs(text, tmp_path) == wanted.replace("21", "22")  # nothing is run again


def test_the_tables_of_a_measurement_are_shown(tmp_path):
    (tmp_path / "benchmarks.md").write_text("# Benchmarks\n")
    assert pages.benchmarks(tmp_path, tmp_path / "none") == "benchmarks.md"
    assert (tmp_path / "benchmarks.md").read_text() == "# Benchmarks\n"
    (tmp_path / "measured.md").write_text("# Benchmarks\n\n## Dense\n\n| a |\n")
    pages.benchmarks(tmp_path, tmp_path / "measured.md")
    wanted = "# Benchmarks\n\n## The last measurement\n\n### Dense\n\n| a |\n"
    assert (tmp_path / "benchmarks.md").read_text() == wanted


def test_search_leaves_formulas_out():
    assert "data-search-exclude" in on_page_content('<span class="arithmatex">x</span>')


def test_parts_about_names_that_do_not_exist_are_left_out():
    part = "<!-- needs: olx.nothing -->\nb\n<!-- end -->\n"
    text = f"a\n{part}| `olx.nothing` | c |\n| `olx.run` | d |\n"
    assert pages.shown(text) == "a\n| `olx.run` | d |\n"


@pytest.mark.skipif(not BUILT, reason="the site is built where `pip install -e '.[docs]'` was done")
def test_the_site_builds_without_warnings():
    words = [sys.executable, "-m", "docs.build"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (ROOT / "build/docs/site/algorithms/second_order/arow.html").read_text()
    plain = re.sub(r"<[^>]*>", "", page)
    for part in (
        r"A_0 = I",
        "arow(r: Scalar) -&gt; Learner",
        "&gt;&gt;&gt; learner",
        "updates_made",
    ):
        assert part in plain
    index = (ROOT / "build/docs/site/search/search_index.json").read_text()
    assert r"\\(" not in index
    assert r"\\[" not in index
