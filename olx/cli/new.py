"""`olx new`: write a file to start from."""

import argparse
import importlib.util
import keyword
from importlib import resources
from pathlib import Path
from typing import Any

from olx._terminal import say

FILES = {  # by kind: the template of each file, and its name
    "learner": {"learner.py.txt": "NAME.py", "test_learner.py.txt": "test_NAME.py"},
    "regularizer": {"regularizer.py.txt": "NAME.py", "test_regularizer.py.txt": "test_NAME.py"},
    "experiment": {"experiment.toml.txt": "NAME.toml"},
}
MORE = """examples:
  olx new learner momentum        momentum.py and test_momentum.py, which checks it
  olx new regularizer bowl        bowl.py, a mirror map from a formula, and test_bowl.py
  olx new experiment first        first.toml; play it with olx run first.toml"""


def add(command: Any) -> None:
    said = "write a commented learner, regularizer or experiment of your own, which runs"
    parser = command("new", do, said, MORE)
    parser.add_argument("kind", choices=list(FILES), help="what to write")
    parser.add_argument("name", help="its name, such as momentum")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where to write it (here)")


def do(asked: argparse.Namespace) -> int:
    name = asked.name
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"{name!r} is no name of Python; use letters, digits and _, such as my_{asked.kind}."
        )
    if asked.kind != "experiment" and importlib.util.find_spec(name) is not None:
        raise ValueError(f"there is a module {name} already; choose another name.")
    texts = {
        asked.folder / file.replace("NAME", name): template(kept).replace("NAME", name)
        for kept, file in FILES[asked.kind].items()
    }
    write(texts)
    next_step = "olx run" if asked.kind == "experiment" else "pytest"
    say(f"Try it: {next_step} {list(texts)[-1]}")
    return 0


def template(name: str) -> str:
    return resources.files("olx.cli").joinpath("templates", name).read_text("utf-8")


def write(texts: dict[Path, str]) -> None:
    """Write new files, all of them or none."""
    for path in texts:
        if path.exists():
            raise FileExistsError(f"{path} is there already; choose another name, or remove it.")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"Wrote {path}.")
