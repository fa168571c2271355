"""What a round costs on an accelerator: how many kernels it launches, one after the other.

The numbers are counted in the compiled program: every operation that is not fused into another one
is a launch, though a device may start several of them at once. A loop or a branch whose course the
compiler does not know is a wait: the host asks the device. Such a loop counts as one step, so the
true number may be larger.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from olx.engine.feed import len_of
from olx.engine.place import accelerated

_FREE = {
    "add-dependency", "after-all", "bitcast", "constant", "copy-done", "get-tuple-element",
    "parameter", "partition-id", "replica-id", "tuple",
}  # fmt: skip
_FEW = 1024  # configurations; with fewer of them a launch costs more than its work


class Cost(NamedTuple):
    """What a program, or a part of it, costs."""

    launches: float = 0
    waits: float = 0

    def plus(self, other: "Cost", times: float = 1) -> "Cost":
        return Cost(self.launches + times * other.launches, self.waits + times * other.waits)


def explain(owner: str, call: Callable, configurations: int, *given: Any) -> None:
    """Print what a round costs, and what to do about it; nothing on the CPU.

    given: the state, the numbers of the game and the rounds of the first chunk.
    """
    if not accelerated():
        return
    cost = cost_of(call, *given)
    waits = f" and {_number(cost.waits)} waits of the host for the device" if cost.waits else ""
    print(
        f"{owner}: a round launches {_number(cost.launches)} kernels{waits}, for "
        f"{configurations:,} configuration{'s' * (configurations > 1)}."
    )
    if cost.waits:
        print(
            f"{owner}: a wait is for a loop or branch that depends on the data, as in sparse rows "
            "and refreshes; dense rows, `rows.toarray()`, have no such loop."
        )
    if configurations < _FEW:
        print(
            f"{owner}: to fill the device, play thousands of configurations or seeds by one "
            "`olx.sweep`, copies by `olx.boosting.boost`, or wide rows; a single narrow learner is "
            "often faster on the CPU (JAX_PLATFORMS=cpu)."
        )


def cost_of(call: Any, state: Any, numbers: Any, rounds: Any) -> Cost:
    """The cost of one of the rounds; `call` is a form of a `Program`."""
    text = call.lower(state, numbers, rounds, None).compile().as_text()
    return Cost().plus(counted(text or ""), 1 / len_of(rounds))


def counted(text: str) -> Cost:
    """The cost of a compiled program, from its text."""
    parts: dict[str, list[str]] = {}
    entry, lines = "", []
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line):
            lines = parts.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("  "):
            lines.append(line)
    return _cost(entry, parts)


def _cost(name: str, parts: dict[str, list[str]]) -> Cost:
    total = Cost()
    for line in parts.get(name, []):
        found = re.search(r" = .*? ?([a-z][a-z\-]*)\(", line)
        kind = found[1] if found else "parameter"
        inner = re.findall(r"(?:body|to_apply)=%?([\w.\-]+)", line)
        if kind == "while":
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
            body = _cost(inner[0], parts)
            total = total.plus(body, int(trips[1])) if trips else total.plus(body).plus(_WAIT)
        elif kind == "call":
            total = total.plus(_cost(inner[0], parts))
        elif kind == "conditional":
            several = re.search(r"branch_computations=\{(.*?)\}", line)
            pair = re.findall(r"(?:true|false)_computation=(%?[\w.\-]+)", line)
            names = several[1].split(", ") if several else pair
            total = total.plus(max(_cost(name.lstrip("%"), parts) for name in names)).plus(_WAIT)
        elif kind not in _FREE:
            total = total.plus(_LAUNCH)
    return total


def _number(value: float) -> str:
    return f"{value:.3g}"


_LAUNCH, _WAIT = Cost(1, 0), Cost(0, 1)
