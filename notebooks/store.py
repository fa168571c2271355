"""Run the notebooks and store their outputs in them, or check the stored outputs.

    python -m notebooks.store                      # all of them
    python -m notebooks.store bandit_on_live_feedback
    python -m notebooks.store --check              # run nothing

The outputs are part of the project: the documentation shows them. Run this after a change of a
notebook. Numbers that depend on the machine, such as seconds, differ between two runs.
"""

import argparse
import base64
import io
import json
import os
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LARGEST = 300_000  # bytes of a notebook with its outputs


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def problems(path: Path) -> list[str]:
    """What is wrong with the stored outputs of a notebook; empty if nothing is."""
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    found = []
    if path.stat().st_size > LARGEST:
        found.append(f"it has {path.stat().st_size} bytes, more than {LARGEST}")
    if [cell["execution_count"] for cell in code] != list(range(1, len(code) + 1)):
        found.append("its cells were not run once each, from the first to the last")
    if not any("image/png" in output.get("data", {}) for output in outputs):
        found.append("it shows no figure")
    if any(output["output_type"] == "error" for output in outputs):
        found.append("a cell ended with an error")
    if any(output.get("name") == "stderr" for output in outputs):
        found.append("a cell wrote to stderr, such as a warning")
    return found


def store(path: Path) -> None:
    """Run a notebook from its first cell to its last and write its outputs into the file."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book, timeout=120, record_timing=False, resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    for cell in book.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = smaller(output.data["image/png"])
                output.metadata.clear()
    book.metadata["language_info"] = {"name": "python"}  # not the version of this machine
    text = nbformat.writes(book, indent=1, ensure_ascii=False)
    path.write_text(re.sub(r" at 0x[0-9a-f]+", "", text) + "\n")


def smaller(picture: str) -> str:
    """The same picture with at most 200 colours: less than half the size."""
    from PIL import Image  # matplotlib brings it

    whole, out = Image.open(io.BytesIO(base64.b64decode(picture))), io.BytesIO()
    few = whole.convert("RGB").quantize(200, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="notebooks.store", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="a notebook; all if none is named")
    parser.add_argument("--check", action="store_true", help="look at the stored outputs only")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in names():
            parser.error(f"there is no notebook {name!r}; there are {', '.join(names())}")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    wrong = 0
    for name in asked.names or names():
        path = FOLDER / f"{name}.ipynb"
        if not asked.check:
            store(path)
        for problem in problems(path):
            wrong += 1
            print(f"{path.name}: {problem}; run `python -m notebooks.store {name}`.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
