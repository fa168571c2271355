"""One page without network: its style, its scripts and its data are part of the file."""

import base64
import hashlib
from importlib import resources
from typing import Any

import jinja2
import markupsafe

from olx.lab.report.colours import palette

STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "scales.js", "charts.js", "controls.js", "page.js")


def render(template: str, learners: dict[str, int], **values: Any) -> str:
    """The page of a template; `learners` gives the number of each colour."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["anchor"] = lambda title: title.lower().replace(" ", "-")
    script = "\n".join(map(_text, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        style=markupsafe.Markup("\n".join([*map(_text, STYLES), _colours(len(learners))])),
        script=markupsafe.Markup(script),
        script_hash=f"'sha256-{digest}'",  # the page runs this script and no other
        learners=learners,
        **values,
    )


def _colours(count: int) -> str:
    pairs = enumerate(palette(count))
    each = (f"--c{i}: light-dark({colour.light}, {colour.dark});" for i, colour in pairs)
    return f":root {{ {' '.join(each)} }}"


def _text(name: str) -> str:
    return resources.files("olx.lab.report").joinpath(name).read_text("utf-8")
