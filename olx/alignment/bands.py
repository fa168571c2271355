"""From a waveform to frames: log-mel bands for speech, semitone bands for music."""

import numpy as np
from jaxtyping import Float

from olx import _check as check
from olx._refusal import RefusedValue, public

Wave = Float[np.ndarray, " samples"]


@public
def log_mel(wave: Wave, rate: float, bands: int = 26, hop: float = 0.01) -> np.ndarray:
    """Logarithms of the energy in `bands` mel bands and of the whole energy, a row per frame.

    rate: samples per second.
    hop: seconds between frames. Frame t begins at t * hop and lasts 25 ms.
    """
    wave = _checked(wave, rate, hop)
    check.count("bands", bands)
    sharper = np.append(wave[:1], wave[1:] - 0.97 * wave[:-1])
    power = _spectrum(sharper, rate, hop, 0.025, np.hamming)
    frequencies = np.linspace(0, rate / 2, power.shape[1])
    mel = lambda f: 2595 * np.log10(1 + f / 700)
    edges = np.interp(
        np.linspace(mel(64.0), mel(rate / 2), bands + 2), mel(frequencies), frequencies
    )
    low, top, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rise, fall = (frequencies - low) / (top - low), (high - frequencies) / (high - top)
    triangles = np.maximum(np.minimum(rise, fall), 0)
    energy = np.column_stack([power @ triangles.T, power.sum(1)])
    return np.log(energy + 1e-8 * energy.max() + 1e-30)


@public
def semitones(
    wave: Wave, rate: float, low: int = 36, high: int = 119, hop: float = 0.01
) -> np.ndarray:
    """Decibels below the loudest band in each semitone from MIDI pitch `low` to `high`, a row per
    frame; frame t is centred at t * hop. Not less than -96."""
    wave = _checked(wave, rate, hop)
    whole = [isinstance(pitch, int | np.integer) and pitch is not True for pitch in (low, high)]
    if not all(whole) or not 0 <= low <= high <= 127:
        raise RefusedValue(
            "`low` and `high` must be MIDI pitches in this order, as 36 and 119, got "
            f"{check.quote(low)} and {check.quote(high)}."
        )
    length = 0.092
    power = _spectrum(np.pad(wave, int(length * rate / 2)), rate, hop, length, np.hanning, 4)
    frequencies = np.linspace(0, rate / 2, power.shape[1])
    pitch = 69 + 12 * np.log2(np.maximum(frequencies, 1.0) / 440)
    pitches = np.arange(low, high + 1)
    near = np.maximum(1 - np.abs(pitch[None, :] - pitches[:, None]), 0)
    energy = power @ near.T
    return np.maximum(10 * np.log10(energy / energy.max() + 1e-30), -96.0)


def _spectrum(wave: Wave, rate: float, hop: float, length: float, window, finer: int = 1):
    """The power spectrum of each frame."""
    size, step = round(length * rate), round(hop * rate)
    count = 1 + max(0, len(wave) - size) // step
    points = finer << (size - 1).bit_length()
    starts = np.arange(count) * step
    frames = wave[starts[:, None] + np.arange(size)] * window(size)
    return np.abs(np.fft.rfft(frames, points)) ** 2


def _checked(wave: Wave, rate: float, hop: float) -> Wave:
    wave = np.asarray(wave)
    check.array("wave", wave, 1)
    rate, hop = check.positive("rate", rate), check.positive("hop", hop)
    if not hop * rate >= 1 or len(wave) < 0.1 * rate:
        raise RefusedValue(
            f"{len(wave)} samples at {rate} per second, {hop} s per frame: give at least "
            "a tenth of a second, and at least one sample per frame."
        )
    return wave.astype(float)
