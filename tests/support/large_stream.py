"""Passes gigabytes through `olx.run`; prints how many bytes passed and how much memory grew."""

import resource

import numpy as np

import olx

BLOCK = np.random.default_rng(0).normal(size=(1 << 16, 64)).astype(np.float32)


def stream(blocks: int):
    for i in range(blocks):
        context = BLOCK + np.float32(i)  # new memory for every piece
        yield olx.Rounds(context, context[:, 0])


def peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def play(blocks: int) -> None:
    learner = olx.linear(olx.ogd(1e-6))
    params = np.zeros(64, np.float32)
    olx.run(learner, olx.losses.squared, stream(blocks), params, keep=olx.keep.log_spaced())


if __name__ == "__main__":
    play(3)
    before = peak()
    play(100)
    print(100 * BLOCK.nbytes, peak() - before)
