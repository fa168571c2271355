"""Pictures of the examples that certify a bound: both sides after every round.

An example is run as it stands in the docstring. Pictures are kept by a digest of the example and
of the whole library, so that a second build makes none.
"""

import contextlib
import doctest
import hashlib
import inspect
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

import olx
from docs.algorithms import Page
from docs.outputs import library
from docs.pictures import save


def make(made: list[Page], folder: Path, cache: Path) -> dict[str, str]:
    """The Markdown of the picture of each page whose example certifies a bound, by module."""
    cache.mkdir(parents=True, exist_ok=True)
    found = {}
    for page in made:
        drawn = _page(page, folder, cache)
        if drawn:
            found[page.module] = drawn
    return found


def _page(page: Page, folder: Path, cache: Path) -> str:
    for one in page.names:
        text = inspect.getdoc(one.thing) or ""
        if "olx.certify(" not in text:
            continue
        digest = hashlib.sha256(f"{library()}{one.typed}{text}".encode()).hexdigest()[:12]
        name = f"{one.typed}.{digest}"
        if not (cache / f"{name}.light.svg").exists():
            proofs = _certificates(text, vars(inspect.getmodule(one.thing)))
            if not proofs:
                continue
            save(cache, name, _draw(proofs[0], one.name))
        for theme in ("light", "dark"):
            target = folder / f"pictures/{name}.{theme}.svg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((cache / f"{name}.{theme}.svg").read_bytes())
        return "\n".join(
            f"![Both sides of a theorem in the example of {one.name}]"
            f"(../../pictures/{name}.{theme}.svg#only-{theme})"
            for theme in ("light", "dark")
        )
    return ""


def _certificates(text: str, names: dict) -> list:
    """Run the example of a docstring; the certificates that it made."""
    kept, real = [], olx.certify

    def certify(*arguments, **options):
        made = real(*arguments, **options)
        kept.extend(made)
        return made

    own = dict(names)
    olx.certify = certify
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for part in doctest.DocTestParser().get_examples(text):
                exec(compile(part.source, "<example>", "single"), own)
    finally:
        olx.certify = real
    return [one for one in kept if np.ndim(one.left) == 1 and np.size(one.left) > 3]


def _draw(proof: olx.Certificate, name: str) -> Callable:
    rounds = np.arange(1, np.size(proof.left) + 1) if proof.at is None else np.asarray(proof.at)

    def draw(axes) -> None:
        axes.plot(rounds, proof.right, label="bound with the terms of this run", color="C1")
        axes.plot(rounds, proof.left, label="what it bounds", color="C0")
        axes.set(xlabel="round", title=f"{name}: {proof.name}, in the example below")
        axes.legend(frameon=False)

    return draw
