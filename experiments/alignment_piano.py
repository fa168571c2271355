"""Piano performances for `experiments.alignment_tables`: sound computed from recorded keys."""

from pathlib import Path

import numpy as np

from experiments.alignment_sounds import Sound, cut
from olx import alignment

LOWEST, HIGHEST = 28, 120  # MIDI pitches


def piano(folder: str, seconds: float = 0.05, players: int = 1) -> list[tuple[int, Sound]]:
    """Performances of four piano pieces, each with the number of its piece.

    The data are the notes that a computer-controlled piano recorded, and no sound. The bands are
    therefore computed from these notes: the energy of a note begins with the square of its
    velocity, falls with time and pitch, is damped when the key is released, and spreads over four
    harmonics. So the timing is that of the pianists, but no room, pedal or noise is heard. An event
    is a time of the score at which a note begins that was played; grace notes are left out.
    """
    data = np.load(Path(folder) / "vienna4x22.npz")
    sounds = []
    for at in np.flatnonzero(data["performer"] <= players):
        own = slice(data["offsets"][at], data["offsets"][at + 1])
        kind, grace, velocity = (data[name][own] for name in ("note_type", "grace", "velocity"))
        onset, offset, pitch = (data[f"perf_{name}"][own] for name in ("onset", "offset", "pitch"))
        heard = kind != 1
        bands = sounding(onset[heard], offset[heard], pitch[heard], velocity[heard], seconds)
        told = (kind == 0) & (grace == 0)
        begins, ends, pitches = (
            data[f"score_{name}"][own][told] for name in ("onset", "offset", "pitch")
        )
        tempo = np.ptp(onset[told]) / np.ptp(begins)  # seconds per beat
        notes = alignment.Score(pitches, begins * tempo, np.maximum(ends, begins + 0.1) * tempo)
        times = np.array([onset[told][begins == beat].mean() for beat in np.unique(begins)])
        starts = np.round(times / seconds).astype(int)
        sound = cut(bands, LOWEST, notes, starts, seconds, least=0.2, most=6.0)
        sounds.append((int(data["piece"][at]), sound))
    return sounds


def sounding(onset, offset, pitch, velocity, seconds: float) -> np.ndarray:
    """Decibels per frame and semitone of struck strings, above a floor of -60."""
    frames = np.arange(int(np.ceil((offset.max() + 1.0) / seconds)))
    energy = np.full((len(frames), HIGHEST - LOWEST), 1e-6)
    for begin, end, key, force in zip(onset, offset, pitch.astype(int), velocity, strict=True):
        age = frames * seconds - begin
        fall = 0.4 + 0.03 * (key - LOWEST)  # per second
        shape = np.exp(-fall * np.maximum(age, 0)) * np.exp(-20 * np.maximum(age - end + begin, 0))
        shape = np.where(age >= -seconds / 2, shape, 0.0) * (force / 127) ** 2
        for number, above in enumerate((0, 12, 19, 24)):
            if key + above < HIGHEST:
                energy[:, key + above - LOWEST] += shape * 0.3**number
    return 10 * np.log10(energy)
