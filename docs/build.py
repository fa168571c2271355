"""Build the site: make the generated pages, then run MkDocs so that every warning is an error.

    pip install -e '.[docs]'
    python -m docs.build             # the site is in build/docs/site
    python -m docs.build --plots     # also a picture of both sides for examples that certify

The site needs no network: open build/docs/site/index.html. Search works there, too.
"""

import argparse
import importlib.metadata
import json
import shutil
from pathlib import Path

from docs import algorithms, others, pages, pictures, reference
from docs.public import ROOT

HERE = Path(__file__).resolve().parent
OUT = ROOT / "build/docs"
HOWTO = (
    "csv_to_predictions",
    "own_data",
    "own_regularizer",
    "own_loss",
    "own_learner",
    "own_theorem",
    "sweep",
    "tune",
    "tune_by_gradient",
    "learn_a_regularizer",
    "certify",
    "sparse_rows",
    "large_streams",
    "resume",
    "serve",
    "scikit_learn",
    "river",
    "networks",
    "mini_batches",
    "experts_and_bandits",
    "second_order",
    "boosting",
    "classes_rankings_sequences",
    "gpu",
    "many_machines",
)
CONCEPTS = ("game", "duality", "regret", "certificates", "one_game", "worst_cases", "engine")


def generate(folder: Path, *, plots: bool = False) -> list:
    """Write all sources of the site into `folder`; gives the navigation.

    What the code of the pages prints, and the plots, are kept beside `folder`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    made = algorithms.pages()
    where = reference.places() | algorithms.places(made)
    pages.write(folder, where, cache=folder.parent / "outputs")
    pictures.make(folder / "pictures")
    drawn = {}
    if plots:
        from docs import plots as examples

        drawn = examples.make(made, folder, folder.parent / "plots")
    algorithms.write(folder, made, drawn)
    files = reference.write(folder)
    rooms = [{Path(file).stem: file} for file in files]
    return [
        {"Start here": ["index.md", "which_learner.md"]},
        {"Concepts": [f"concepts/{name}.md" for name in CONCEPTS]},
        {"How to": ["howto/index.md", *(f"howto/{name}.md" for name in HOWTO)]},
        {"Algorithms": ["algorithms/index.md", *_groups(made)]},
        {"Reference": ["reference/index.md", *rooms]},
        {"Notebooks": others.notebooks(folder)},
        {
            "More": [
                others.reproductions(folder),
                others.benchmarks(folder),
                *others.architecture(folder),
                others.contributing(folder),
            ]
        },
    ]


def _groups(made: list[algorithms.Page]) -> list:
    return [
        {title: [{page.label: page.file} for page in made if page.group == group]}
        for group, title in algorithms.GROUPS.items()
        if any(page.group == group for page in made)
    ]


def formulas(folder: Path) -> None:
    """Copy MathJax from the Python package that ships it."""
    package = importlib.metadata.distribution("sphinx-mathjax-offline")
    script = next(file for file in package.files or () if file.name == "tex-svg.js")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(package.locate_file(script), folder / "tex-svg.js")


def main() -> None:
    parser = argparse.ArgumentParser(prog="docs.build", description="Build the site.")
    parser.add_argument("--plots", action="store_true", help="draw the examples that certify")
    asked = parser.parse_args()
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    navigation = generate(OUT / "source", plots=asked.plots)
    formulas(OUT / "source/assets/mathjax")
    config = OUT / "mkdocs.yml"
    base = (HERE / "mkdocs.yml").read_text()
    config.write_text(f"{base}\nnav: {json.dumps(navigation)}\n")
    site = load_config(str(config), strict=True)
    site.plugins.on_startup(command="build", dirty=False)
    try:
        build(site)
    finally:
        site.plugins.on_shutdown()
    print(f"The site is in {(OUT / 'site').relative_to(ROOT)}; open index.html.")


if __name__ == "__main__":
    main()
