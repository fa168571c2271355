"""Write plain values as TOML, so that `tomllib` reads back the same values."""

import json
import re
from collections.abc import Mapping
from typing import Any


def dumps(tree: Mapping[str, Any]) -> str:
    """The TOML text of `tree`: values first, then tables; deeper tables are written inline.

    >>> print(dumps({"seeds": 5, "data": [{"name": "a9a", "bias": True}]}), end="")
    seeds = 5
    <BLANKLINE>
    [[data]]
    name = "a9a"
    bias = true
    """
    tables = {key: value for key, value in tree.items() if _is_tables(value)}
    blocks = [_body({key: value for key, value in tree.items() if key not in tables})]
    for key, value in tables.items():
        for table in value:
            blocks.append(f"[[{_key(key)}]]\n" + _body(table))
    return "\n".join(block for block in blocks if block)


def _body(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(k)} = {_value(v)}\n" for k, v in table.items() if v is not None)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(v, dict) for v in value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)
