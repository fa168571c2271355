"""How many rounds a chunk has.

A chunk is large enough to hide the cost of a call, and small enough for the cache. In a sweep
it also reads and writes the states of all configurations, and its output grows with their number.
"""

from olx.engine import place

_BYTES = 1 << 21  # of rows per chunk
_READY = 16  # times as many for arrays of the device, which are played where they are
_MOST = 1 << 16  # rounds per chunk
_LOSSES = 1 << 20  # per chunk, over all configurations
_ENOUGH = 64  # rounds; more losses are written so that a chunk has as many
_OUTPUT = 8  # bytes per round and configuration: the loss, and a number that is recorded


def rounds_per_chunk(
    length: int, row: int, configurations: int, whole: bool, ready: bool, light: bool
) -> int:
    """The number of rounds per chunk: a power of two, or on an accelerator a stream that fits.

    A long stream has at least one full chunk: only those are played where they are.

    length: the number of rounds of the first piece; later pieces may be longer.
    row: bytes per round.
    light: whether at most one number is recorded per round and configuration. More may be as large
        as a row.
    """
    most = _BYTES * (_READY if ready else 1) // row
    best = max(4, most // max(1, configurations // 64))
    if light:
        least = min(_ENOUGH, 16 * _LOSSES // configurations)
        best = max(best, min(most, max(_LOSSES // configurations, least)))
    best = min(_MOST, best)
    if place.accelerated():
        output = _OUTPUT if light else _OUTPUT + row
        best = max(place.room() // (row + output * configurations), 4)
        if whole and length <= best:
            return length
        best = 1 << (best.bit_length() - 1)
    if not whole:
        length = max(length, min(1024, best))
    rounds = min(best, length)
    return 1 << (rounds.bit_length() - 1 if rounds * row > _BYTES else (rounds - 1).bit_length())
