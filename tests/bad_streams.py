"""Streams that no driver may accept."""

import numpy as np
from bad_inputs import Bad

import olx

ZEROS = np.zeros(3)


def play(rounds: olx.Rounds) -> olx.Run:
    return olx.run(olx.linear(olx.ogd(0.1)), olx.losses.squared, rounds, ZEROS)


BAD = {
    "no rounds": Bad(
        lambda: play(olx.Rounds(np.zeros((0, 3)), np.zeros(0))), ValueError, "run: .*empty"
    ),
    "lengths that differ": Bad(
        lambda: play(olx.Rounds(np.zeros((4, 3)), np.zeros(5))), TypeError, "run: .*length"
    ),
}
