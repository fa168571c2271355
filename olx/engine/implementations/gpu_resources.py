"""What a round needs of a GPU, counted in its legal form, and how a kernel is cut by it.

A multiprocessor has 65,536 registers of 4 bytes, and a thread at most 255 of them. It has 164 KB of
shared memory on an A100, and 100 KB on an RTX 4090, of which a program can have 99 KB. A kernel is
cut so that both devices hold it:

1. A program of the grid plays a block of configurations, a power of two. The block is doubled while
   four warps hold it, and while the grid keeps `GPU_PROGRAMS` programs.
2. It has as many warps as bring a thread to `GPU_NUMBERS_WANTED` live numbers, at most four; more,
   up to 16, only if a thread had more than `GPU_NUMBERS_MOST`.
3. A round with products of two matrices has blocks of one: `dot` of Triton has no batch axis.
4. A row is loaded a round before it is needed, so that its way from the cache costs no time.

What is counted is an upper estimate: the compiler may order the operations in a better way. None of
the constants was measured on a device.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from olx._memory import equations, inner_programs
from olx.engine import tuning
from olx.engine.implementations.gpu_padding import power_of_two

FREE = {"broadcast_in_dim", "copy", "expand_dims", "iota", "reshape", "squeeze"}  # no numbers
_SHARED = {"transpose", "cumsum", "dot_general"}  # operands pass through shared memory
_WARP = 32  # threads
_REGISTERS = 65_536  # of a multiprocessor
_REGISTERS_THREAD = 255
_SHARED_BYTES = 99 * 1024  # that a program can have


class Resources(NamedTuple):
    """What a round of one configuration needs."""

    live: int  # numbers of 4 bytes that are needed at the same time, at most
    shared: int  # bytes that pass through shared memory at a time
    multiplies: bool  # whether two matrices are multiplied


class Cut(NamedTuple):
    """How the configurations are cut into programs of a grid."""

    block: int  # configurations per program
    warps: int  # per program
    registers: int  # per thread
    shared: int  # bytes

    def why_not(self) -> str:
        """Why a device has no room for it; empty if an A100 and an RTX 4090 have."""
        if self.registers > min(_REGISTERS_THREAD, _REGISTERS // (_WARP * self.warps)):
            return f"the state leaves the registers: a thread needs about {self.registers} of them"
        if self.shared > _SHARED_BYTES:
            return (
                f"a round needs {self.shared >> 10} KB of shared memory, of {_SHARED_BYTES >> 10}"
            )
        return ""


def resources_of(program: Any) -> Resources:
    """The needs of a legal round of one configuration, a closed jaxpr."""
    found = [one for one in equations(program.jaxpr) if one.primitive.name in _SHARED]
    shared = [sum(map(numbers_of, one.invars)) * 4 for one in found]
    multiplies = any(one.primitive.name == "dot_general" for one in found)
    return Resources(_peak(program.jaxpr), max(shared, default=0), multiplies)


def cut_of(needs: Resources, configurations: int) -> Cut:
    """The blocks, warps and registers for so many configurations, by the rule above."""
    block, most = 1, tuning.GPU_NUMBERS_MOST * _WARP * tuning.GPU_WARPS
    while (
        not needs.multiplies
        and 2 * block * needs.live <= most
        and 2 * block * tuning.GPU_PROGRAMS <= configurations
        and 2 * block <= tuning.GPU_BLOCK_MOST
    ):
        block *= 2
    live = block * needs.live
    wanted = power_of_two(-(-live // (_WARP * tuning.GPU_NUMBERS_WANTED)))
    needed = power_of_two(-(-live // (_WARP * tuning.GPU_NUMBERS_MOST)))
    warps = max(min(wanted, tuning.GPU_WARPS), min(needed, tuning.GPU_WARPS_MOST))
    registers = -(-live // (_WARP * warps)) + tuning.GPU_REGISTERS_BESIDE
    return Cut(block, warps, registers, block * needs.shared)


def _peak(jaxpr: Any) -> int:
    """The most numbers that are live at the same time, in the order of the equations.

    Broadcasts are free; they and views keep their operand alive. Masks are single bits.
    """
    origin: dict[Any, Any] = {}  # of a view
    source = lambda atom: origin.get(atom, atom)
    uses: dict[Any, int] = {}
    for i, one in enumerate(jaxpr.eqns):
        if one.primitive.name in FREE and one.invars:
            origin[one.outvars[0]] = None if _literal(one.invars[0]) else source(one.invars[0])
        uses |= {source(atom): i for atom in one.invars if not _literal(atom)}
    uses |= {source(atom): len(jaxpr.eqns) for atom in jaxpr.outvars if not _literal(atom)}
    live = {variable: numbers_of(variable) for variable in (*jaxpr.invars, *jaxpr.constvars)}
    peak = sum(live.values())
    for i, one in enumerate(jaxpr.eqns):
        if one.primitive.name not in FREE:
            live |= {variable: numbers_of(variable) for variable in one.outvars}
        own = sum(live.values())
        given = sum(numbers_of(atom) for atom in one.invars)
        inner = [_peak(getattr(own, "jaxpr", own)) - given for own in inner_programs(one)]
        peak = max(peak, own + max([0, *inner]))
        live = {variable: size for variable, size in live.items() if uses.get(variable, -1) > i}
    return peak


def _literal(atom: Any) -> bool:
    return hasattr(atom, "val")


def numbers_of(atom: Any) -> int:
    """Registers of 4 bytes for an array; none for masks, which are single bits."""
    kind = atom.aval
    if _literal(atom) or kind.dtype == bool:
        return 0
    return math.prod(kind.shape) * max(jnp.dtype(kind.dtype).itemsize // 4, 1)
