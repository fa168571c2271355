"""Pages made from other parts of the project: notebooks, configs, architecture."""

import json
import re
import tomllib
from pathlib import Path

from docs.public import ROOT


def notebooks(folder: Path) -> list[str]:
    """One page per notebook: its text, its code, and stored outputs if there are any."""
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    files = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        parts = [_cell(cell) for cell in cells]
        note = f"*This page shows `notebooks/{path.name}`. Run it to see its outputs.*"
        if any(cell.get("outputs") for cell in cells):
            note = f"*This page shows `notebooks/{path.name}`.*"
        parts.insert(1, note)
        file = f"notebooks/{path.stem}.md"
        (folder / file).write_text("\n\n".join(parts) + "\n")
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
    return f'```text title="output"\n{text.rstrip()}\n```' if text else ""


def reproductions(folder: Path) -> str:
    """The configs that repeat tables of the literature, with the published numbers."""
    parts = [
        "# Tables of the literature",
        "The configs in `configs/reproduce` repeat published tables. Each config names its data, "
        "its learners and its grids. It also holds the published numbers, and the report shows "
        "them beside ours. The tables of this page hold the published numbers; the note below each "
        "says how ours compare.",
        "```sh\nOLX_DATA=path/to/data olx run configs/reproduce/portfolios.toml\n```",
    ]
    for path in sorted((ROOT / "configs/reproduce").glob("*.toml")):
        parts.append(_config(path))
    (folder / "reproductions.md").write_text("\n\n".join(parts) + "\n")
    return "reproductions.md"


def _config(path: Path) -> str:
    text = path.read_text()
    config = tomllib.loads(text)
    comments = re.match(r"(?:#.*\n)*", text)
    about = [line.lstrip("#").rstrip() for line in (comments[0] if comments else "").split("\n")]
    about = [line.removeprefix(" ") for line in about if "OLX_DATA=" not in line]
    learners = [one.get("label", one["name"]) for one in config["learners"]]
    published = config.get("published", [])
    sets = list(dict.fromkeys(name for one in published for name in one["values"]))
    rows = [
        f"| {name} | " + " | ".join(str(one["values"].get(name, "")) for one in published) + " |"
        for name in sets
    ]
    head = [
        "| data | " + " | ".join(f"{one['source']}: {one['metric']}" for one in published) + " |",
        "|---" * (len(published) + 1) + "|",
    ]
    parts = [
        f"## {config['title']}",
        config["description"],
        f"Config: `configs/reproduce/{path.name}`. Learners: {', '.join(learners)}.",
        "\n".join([*head, *rows]) if published else "",
        _details("What is known about this table", "\n".join(about).strip()),
    ]
    return "\n\n".join(part for part in parts if part)


def benchmarks(folder: Path, measured: Path = ROOT / "results/benchmarks/benchmarks.md") -> str:
    """The page of the benchmarks, with the tables of the last measurement if there is one."""
    page = folder / "benchmarks.md"
    if measured.is_file():
        tables = re.sub(r"^#+ ", "### ", measured.read_text(), flags=re.M)
        page.write_text(f"{page.read_text().rstrip()}\n\n## The last measurement\n\n{tables}")
    return "benchmarks.md"


def _details(title: str, text: str) -> str:
    inside = "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
    return f'??? note "{title}"\n\n{inside}' if text else ""


def architecture(folder: Path) -> list[str]:
    """ARCHITECTURE.md as two pages: the contract, and the glossary."""
    whole = (ROOT / "ARCHITECTURE.md").read_text()
    contract, _, glossary = whole.partition("## Glossary")
    (folder / "architecture.md").write_text(contract.rstrip() + "\n")
    (folder / "glossary.md").write_text(f"# Glossary{glossary}")
    return ["architecture.md", "glossary.md"]


def contributing(folder: Path) -> str:
    """CONTRIBUTING.md, with its links turned to the pages of the site."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (folder / "contributing.md").write_text(text.replace("ARCHITECTURE.md)", "architecture.md)"))
    return "contributing.md"
