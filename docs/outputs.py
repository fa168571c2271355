"""What the code of a page prints, shown below each block.

The blocks of a page are run in order, as one program. Outputs are kept by a digest of the page and
of the whole library, so that a second build runs nothing.
"""

import contextlib
import functools
import hashlib
import io
import json
import re
from pathlib import Path

from docs.public import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.S | re.M)


def shown(text: str, cache: Path) -> str:
    """The page with the output of each block below it."""
    blocks = [found[1] for found in BLOCK.finditer(text)]
    printed = iter(_kept(blocks, cache))

    def add(found: re.Match) -> str:
        said = next(printed)
        return f'{found[0]}\n```text title="output"\n{said}```\n' if said else found[0]

    return BLOCK.sub(add, text)


def _kept(blocks: list[str], cache: Path) -> list[str]:
    """The output of each block, from the cache if it is there."""
    digest = hashlib.sha256(library().encode() + "\0".join(blocks).encode()).hexdigest()[:16]
    path = cache / f"{digest}.json"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_printed(blocks)))
    return json.loads(path.read_text())


def _printed(blocks: list[str]) -> list[str]:
    names: dict = {"__name__": "page"}
    said = []
    for block in blocks:
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
