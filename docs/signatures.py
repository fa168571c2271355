"""How a factory is called, as text."""

import inspect
import re

from docs.public import Name


def signature(one: Name) -> str:
    """The call of a factory, one argument per line if it is long."""
    shown = inspect.signature(one.thing)
    arguments = [_argument(argument) for argument in shown.parameters.values()]
    keyword = [p.kind is inspect.Parameter.KEYWORD_ONLY for p in shown.parameters.values()]
    if True in keyword and not _takes_all(shown):
        arguments.insert(keyword.index(True), "*")
    gives = (
        ""
        if shown.return_annotation is inspect.Signature.empty
        else " -> " + _type(shown.return_annotation)
    )
    flat = f"{one.typed}({', '.join(arguments)}){gives}"
    if len(flat) <= 80:
        return flat
    return f"{one.typed}(\n" + "".join(f"    {part},\n" for part in arguments) + f"){gives}"


def _takes_all(shown: inspect.Signature) -> bool:
    return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in shown.parameters.values())


def _argument(one: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    word = stars.get(one.kind, "") + one.name
    if one.annotation is not inspect.Parameter.empty:
        word += f": {_type(one.annotation)}"
    if one.default is not inspect.Parameter.empty:
        default = getattr(one.default, "__name__", None) or repr(one.default)
        word += f" = {default}" if ":" in word else f"={default}"
    return word


def _type(kind: object) -> str:
    word = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", inspect.formatannotation(kind))
    return word.replace("int | float | Array", "Scalar")
