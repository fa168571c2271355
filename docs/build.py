"""Build the site: make the generated pages, then run MkDocs so that every warning is an error.

    pip install -e '.[docs]'
    python -m docs.build             # the site is in build/docs/site

The site needs no network: open build/docs/site/index.html. Search works there, too.
"""

import importlib.metadata
import json
import logging
import re
import shutil
from pathlib import Path

from docs import pages, pictures, reference
from docs.public import ROOT

HERE = Path(__file__).resolve().parent
OUT = ROOT / "build/docs"
CONCEPTS = ("game", "duality", "regret", "certificates", "one_game", "worst_cases", "engine")


def generate(folder: Path) -> list:
    """Write all sources of the site into `folder`; gives the navigation.

    What the code of the pages prints is kept beside `folder`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    made = reference.algorithms()
    pages.write(folder, reference.places(made), cache=folder.parent / "outputs")
    pictures.make(folder / "pictures")
    modules = [{Path(file).stem: file} for file in reference.write(folder, made)]
    groups = [
        {title: [{page.label: page.file} for page in made if page.group == group]}
        for group, title in reference.GROUPS.items()
        if any(page.group == group for page in made)
    ]
    more = [pages.reproductions(folder), pages.benchmarks(folder), *pages.project(folder)]
    return [
        {"Start here": ["index.md", "which_learner.md"]},
        {"Concepts": [f"concepts/{name}.md" for name in CONCEPTS]},
        {"How to": ["howto/index.md", *(f"howto/{name}.md" for name in howto())]},
        {"Algorithms": ["algorithms/index.md", *groups]},
        {"Reference": ["reference/index.md", *modules]},
        {"Notebooks": pages.notebooks(folder)},
        {"More": more},
    ]


def howto() -> list[str]:
    """The how-to pages, in the order of their index."""
    return re.findall(r"\]\((\w+)\.md\)", (pages.SOURCE / "howto/index.md").read_text())


def formulas(folder: Path) -> None:
    """Copy MathJax from the Python package that ships it."""
    package = importlib.metadata.distribution("sphinx-mathjax-offline")
    script = next(file for file in package.files or () if file.name == "tex-svg.js")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(package.locate_file(script), folder / "tex-svg.js")


def main() -> None:
    logging.basicConfig(level=logging.WARNING)  # says what strict MkDocs refuses
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    navigation = generate(OUT / "source")
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
