r"""Synthesized recordings with known boundaries: speech-like and music-like sound.

Speech: each phone has a spectrum of its own, three formants with noise between them. Events follow
each other with random lengths and short cross-fades. Music: notes with four harmonics that fade
away, played with a tempo that drifts around that of the score.

They are made with NumPy, sample by sample, so that no sound file is needed.
"""

from typing import NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import public

RATE = 16_000  # samples per second


class Spoken(NamedTuple):
    """A recording of speech-like sound."""

    wave: np.ndarray
    phones: np.ndarray  # of each event
    starts: np.ndarray  # in seconds; the first is 0


class Played(NamedTuple):
    """A recording of music-like sound, and its score."""

    wave: np.ndarray
    pitch: np.ndarray  # of each note, in the order of the score
    onset: np.ndarray  # in the score, in seconds
    offset: np.ndarray
    starts: np.ndarray  # in the recording, in seconds


@public
def spoken(seed: int, events: int = 12, phones: int = 8, noise: float = 0.02) -> Spoken:
    """A sequence of `events` random phones out of `phones`.

    seed: of the sequence; the sound of a phone does not depend on it.
    noise: its level relative to the loudest sample.

    >>> one = spoken(0, events=3)
    >>> len(one.phones), float(one.starts[0])
    (3, 0.0)
    """
    check.seed(seed)
    noise = check.non_negative("noise", noise)
    check.count("events", events)
    check.count("phones", phones)
    draw = np.random.default_rng([seed, 1])
    said = draw.integers(0, phones, events)
    repeats = np.flatnonzero(said[1:] == said[:-1])
    while phones > 1 and len(repeats):  # a boundary between equal sounds cannot be heard
        said[repeats + 1] = draw.integers(0, phones, len(repeats))
        repeats = np.flatnonzero(said[1:] == said[:-1])
    voices = np.random.default_rng(7)
    formants = voices.uniform([250, 900, 2200], [900, 2200, 3800], (phones, 3))
    loudness, usual = voices.uniform(0.4, 1.0, phones), voices.uniform(0.06, 0.16, phones)
    lengths = np.maximum(usual[said] * np.exp(0.25 * draw.normal(size=events)), 0.04)
    ends = np.cumsum(np.round(lengths * RATE)).astype(int)
    starts = np.append(0, ends[:-1])
    time, wave = np.arange(ends[-1]) / RATE, np.zeros(ends[-1])
    fade = int(0.005 * RATE)
    for phone, begin, end in zip(said, starts, ends, strict=True):
        here = slice(begin, end)
        phases = draw.uniform(0, 2 * np.pi, 3)[:, None]
        tones = np.sin(2 * np.pi * formants[phone][:, None] * time[here] + phases)
        sound = tones.sum(0) * (1 + 0.3 * np.sin(2 * np.pi * 110 * time[here]))
        edge = np.minimum(np.arange(end - begin), np.arange(end - begin)[::-1])
        wave[here] = loudness[phone] * sound * np.minimum(1.0, (edge + 1) / fade)
    wave += noise * np.abs(wave).max() * draw.normal(size=len(wave))
    return Spoken(wave, said, starts / RATE)


@public
def played(seed: int, notes: int = 16, noise: float = 0.01) -> Played:
    """A random melody of `notes` notes, one after the other.

    >>> one = played(0, notes=4)
    >>> len(one.pitch), len(one.starts)
    (4, 4)
    """
    check.seed(seed)
    noise = check.non_negative("noise", noise)
    check.count("notes", notes)
    draw = np.random.default_rng([seed, 2])
    steps = draw.choice([-5, -4, -2, -1, 1, 2, 3, 5], notes)
    pitch = 60 + np.cumsum(steps) % 24
    beats = draw.choice([0.25, 0.25, 0.5, 0.5, 1.0], notes) * 0.6
    onset = np.append(0.0, np.cumsum(beats)[:-1])
    tempo = np.exp(np.cumsum(0.06 * draw.normal(size=notes)))
    lasts = beats * tempo
    starts = np.append(0.0, np.cumsum(lasts)[:-1])
    total = int((starts[-1] + lasts[-1]) * RATE)
    time, wave = np.arange(total) / RATE, np.zeros(total)
    for note, begin, length in zip(pitch, starts, lasts, strict=True):
        here = slice(int(begin * RATE), min(total, int((begin + 1.2 * length) * RATE)))
        own = time[here] - begin
        base = 440 * 2 ** ((note - 69) / 12)
        tones = [np.sin(2 * np.pi * k * base * own) / k for k in (1, 2, 3, 4)]
        wave[here] += np.sum(tones, 0) * np.exp(-own / 0.4) * np.minimum(1.0, own / 0.003)
    wave += noise * np.abs(wave).max() * draw.normal(size=total)
    return Played(wave, pitch, onset, onset + beats, starts)
