"""The hand-written pages, and those made of notebooks, configs and the files beside the README.

Names in backquotes become links. A part between `<!-- needs: olx.x.y -->` and `<!-- end -->` is
shown if `olx.x.y` exists. A row of a table whose first cell is such a name is shown if the name
exists. The blocks of a page are run in order, as one program, and what they print is shown below
each. It is kept by a digest of the page and of the whole library: a second build runs nothing.
"""

import contextlib
import functools
import hashlib
import io
import json
import pkgutil
import re
import shutil
import tomllib
from pathlib import Path

from docs.docstrings import linked
from docs.public import ROOT

SOURCE = Path(__file__).resolve().parent / "pages"
_PART = re.compile(r"<!-- needs: ([\w.]+) -->\n(.*?)<!-- end -->\n?", re.S)
_ROW = re.compile(r"^\| `(olx\.[\w.]+)`.*\n", re.M)
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.S | re.M)


def write(folder: Path, where: dict[str, str], cache: Path | None = None) -> None:
    """Copy all hand-written pages.

    where: the page of every public name, by the name that users type.
    cache: where to keep what the code of the pages prints; None to leave it out.
    """
    shutil.copytree(SOURCE, folder)
    for path in folder.rglob("*.md"):
        inside = path.relative_to(folder)
        text = shown(path.read_text())
        if cache is not None and (inside.parts[0] == "howto" or inside.name == "index.md"):
            text = with_outputs(text, cache)
        up = "../" * len(inside.parent.parts)
        target = lambda name, up=up: up + where[name] if name in where else None
        path.write_text(linked(text, target))


def shown(text: str) -> str:
    """The text without the parts and rows about names that do not exist."""
    text = _PART.sub(lambda part: part[2] if exists(part[1]) else "", text)
    return _ROW.sub(lambda row: row[0] if exists(row[1]) else "", text)


def exists(name: str) -> bool:
    """Whether a name such as `olx.boosting.adaboost` can be typed."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def blocks(text: str) -> list[str]:
    """The Python blocks of a page that are run."""
    return [found[1] for found in _BLOCK.finditer(shown(text))]


def with_outputs(text: str, cache: Path) -> str:
    """The page with the output of each block below it, from the cache if it is there."""
    code = blocks(text)
    digest = hashlib.sha256(library().encode() + "\0".join(code).encode()).hexdigest()[:16]
    path = cache / f"{digest}.json"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(printed(code)))
    said = iter(json.loads(path.read_text()))
    return _BLOCK.sub(lambda found: found[0] + _output_block(next(said), "\n"), text)


def printed(code: list[str]) -> list[str]:
    """Run blocks as one program; what each of them prints."""
    names: dict = {"__name__": "page"}
    said = []
    for block in code:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "<page>", "exec"), names)
        said.append(out.getvalue())
    return said


@functools.cache
def library() -> str:
    """A digest of the source of the library."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / "olx").rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def notebooks(folder: Path) -> list[str]:
    """One page per notebook: its text, its code, and stored outputs if there are any."""
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    files = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        stored = any(cell.get("outputs") for cell in cells)
        hint = "" if stored else " Run it to see its outputs."
        note = f"*This page shows `notebooks/{path.name}`.{hint}*"
        first, *rest = map(_cell, cells)
        file = f"notebooks/{path.stem}.md"
        (folder / file).write_text("\n\n".join([first, note, *rest]) + "\n")
        files.append(file)
    return files


def _cell(cell: dict) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    outputs = [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join([f"```python\n{source}\n```", *filter(None, outputs)])


def _output(output: dict) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return _output_block(text.rstrip() + "\n" if text else "").rstrip()


def _output_block(text: str, before: str = "") -> str:
    return f'{before}```text title="output"\n{text}```\n' if text else ""


def reproductions(folder: Path) -> str:
    """The configs that repeat tables of the literature, with the published numbers."""
    about = """# Tables of the literature

The configs in `configs/reproduce` repeat published tables. Each config names its data, its
learners and its grids. It also holds the published numbers, and the report shows them beside ours.
The tables of this page hold the published numbers; the note below each says how ours compare.

```sh
OLX_DATA=path/to/data olx run configs/reproduce/portfolios.toml
```"""
    parts = [about, *map(_config, sorted((ROOT / "configs/reproduce").glob("*.toml")))]
    (folder / "reproductions.md").write_text("\n\n".join(parts) + "\n")
    return "reproductions.md"


def _config(path: Path) -> str:
    text = path.read_text()
    config = tomllib.loads(text)
    comments = re.match(r"(?:#.*\n)*", text)
    lines = [line.lstrip("#").rstrip() for line in (comments[0] if comments else "").split("\n")]
    about = "\n".join(line.removeprefix(" ") for line in lines if "OLX_DATA=" not in line).strip()
    note = "".join(f"\n    {line}".rstrip(" ") for line in about.split("\n"))
    published = config.get("published", [])
    sets = dict.fromkeys(name for one in published for name in one["values"])
    table = [["data", *(f"{one['source']}: {one['metric']}" for one in published)]]
    table += [["---"] * len(table[0])]
    table += [[name, *(str(one["values"].get(name, "")) for one in published)] for name in sets]
    learners = ", ".join(one.get("label", one["name"]) for one in config["learners"])
    parts = [
        f"## {config['title']}",
        config["description"],
        f"Config: `configs/reproduce/{path.name}`. Learners: {learners}.",
        "\n".join(f"| {' | '.join(row)} |" for row in table) if published else "",
        f'??? note "What is known about this table"\n{note}' if about else "",
    ]
    return "\n\n".join(part for part in parts if part)


def benchmarks(folder: Path, measured: Path = ROOT / "results/benchmarks/benchmarks.md") -> str:
    """The page of the benchmarks, with the tables of the last measurement if there is one."""
    page = folder / "benchmarks.md"
    if measured.is_file():
        text = measured.read_text().removeprefix("# Benchmarks").lstrip()
        tables = re.sub(r"^#+ ", "### ", text, flags=re.M)
        page.write_text(f"{page.read_text().rstrip()}\n\n## The last measurement\n\n{tables}")
    return "benchmarks.md"


def project(folder: Path) -> list[str]:
    """ARCHITECTURE.md as contract and glossary, CONTRIBUTING.md and CHANGELOG.md."""
    contract, _, glossary = (ROOT / "ARCHITECTURE.md").read_text().partition("## Glossary")
    texts = {
        "architecture.md": contract.rstrip() + "\n",
        "glossary.md": f"# Glossary{glossary}",
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
    }
    for file, text in texts.items():
        text = text.replace("(ARCHITECTURE.md)", "(architecture.md)").replace("(docs/pages/", "(")
        (folder / file).write_text(text.replace("(CONTRIBUTING.md)", "(contributing.md)"))
    return list(texts)
