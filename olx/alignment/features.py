r"""Features of recordings of speech and music, and the frames that they are made of.

Speech, with frames $x_t$ such as those of `log_mel`, phones $e_i$, frame confidences $g_e(x_t)$ and
lengths $l_i$ in frames:

- `start` (4): $\|x_{y_i - j} - x_{y_i + j}\|$ for $j = 1..4$, how much the sound changes there;
- `inside` (1): $g_{e_i}(x_t)$, for instance the logarithm of the posterior of the phone;
- `length` (1): the log-density of $l_i$ under a normal law with the mean and the deviation of the
  phone, $\mu_{e_i}$ and $\sigma_{e_i}$;
- tempo (1): $(r_i - r_{i-1})^2$ with $r_i = l_i / \mu_{e_i}$.

Music, with a score and its performance: an event is a set of notes of the score that begin
together. With the energies $E_h(t)$ of its notes in the bands of `semitones` of the harmonics
$h = 1, 2, 3$ of their pitches:

- `start` (9): $E_h$, and its first and second derivative from a parabola fitted around the frame;
- `inside` (1): how well the notes that sound in the score explain the frame: the mean energy in
  the bands of their harmonics minus the mean over all bands. The thesis has no such feature; it is
  needed where several notes sound at once;
- tempo (1): $(r_i - r_{i-1})^2$ with $r_i = l_i / (s_{i+1} - s_i)$ for the score times $s_i$. It is
  0 where two events of the score are at most 60 ms apart.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 9.5 and 9.6.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.alignment.recording import Recording

Wave = Float[np.ndarray, " samples"]


class Lengths(NamedTuple):
    """The law of the length of each phone, in frames."""

    mean: np.ndarray  # [phones]
    deviation: np.ndarray  # [phones]


class Score(NamedTuple):
    """The notes of a score, in any order."""

    pitch: ArrayLike  # MIDI pitches
    onset: ArrayLike  # seconds
    offset: ArrayLike  # seconds

    def events(self) -> np.ndarray:
        """The times at which notes begin, each once."""
        return np.unique(np.asarray(self.onset, float))


@public
def speech_recording(
    frames: np.ndarray,
    phones: ArrayLike,
    confidences: np.ndarray,
    lengths: Lengths,
    longest: int = 40,
) -> Recording:
    """The features of a recording of speech.

    frames: [T, d], such as the result of `log_mel`.
    phones: the phone of each event, in order.
    confidences: [T, phones], such as the logarithms of posteriors.
    longest: the most frames that an event may last.
    """
    check.instance("lengths", lengths, Lengths)
    frames, phones = np.asarray(frames), np.asarray(phones)
    check.array("frames", frames, 2)
    check.array("confidences", np.asarray(confidences), 2)
    frames = frames.astype(float)
    _check_speech(frames, phones, confidences, lengths, longest)
    count = len(frames)
    at = lambda shift: frames[np.clip(np.arange(count) + shift, 0, count - 1)]
    change = [np.linalg.norm(at(-j) - at(j), axis=1) for j in (1, 2, 3, 4)]
    mean, deviation = lengths.mean[phones], lengths.deviation[phones]
    steps = 1 + np.arange(longest)
    away = (steps[None, :] - mean[:, None]) / deviation[:, None]
    law = -(away**2) / 2 - np.log(deviation[:, None] * np.sqrt(2 * np.pi))
    return Recording(
        np.stack(change, axis=1)[None],
        np.asarray(confidences, float)[:, phones].T[:, :, None],
        law[:, :, None],
        mean,
        np.ones(len(phones)),
        np.ones(len(phones)),
        np.asarray(float(count)),
        np.asarray(float(len(phones))),
    )


@public
def phone_lengths(phones: Sequence[ArrayLike], lengths: Sequence[ArrayLike], count: int) -> Lengths:
    """The mean and the deviation of the length of each phone.

    phones, lengths: per recording, the phone of each event and its length in frames.
    count: the number of phones. A phone that does not occur gets the law of all phones.
    """
    every, lasts = _all_events(phones, lengths, count)
    mean = np.full(count, lasts.mean())
    deviation = np.full(count, lasts.std())
    for phone in range(count):
        own = lasts[every == phone]
        if len(own) > 1:
            mean[phone], deviation[phone] = own.mean(), max(own.std(), 0.1 * own.mean())
    return Lengths(mean, np.maximum(deviation, 1.0))


@public
def music_recording(
    bands: np.ndarray,
    lowest: int,
    score: Score,
    shortest: float = 0.5,
    lengths: int = 64,
) -> Recording:
    """The features of a performance of a score; the events are those of `score.events()`.

    bands: [T, semitones], in decibels, such as the result of `semitones`.
    lowest: the MIDI pitch of the first band.
    shortest: the shortest length of an event, as a share of its length in the score at the mean
        tempo of the recording.
    lengths: how many lengths are tried, each one frame longer than the one before.
    """
    bands = np.asarray(bands)
    check.array("bands", bands, 2)
    check.instance("score", score, Score)
    check.count("lengths", lengths)
    check.finite("lowest", lowest)
    shortest = check.non_negative("shortest", shortest)
    for name, part in score._asdict().items():
        check.array(f"score.{name}", np.asarray(part), 1)
    bands = bands.astype(float)
    pitch, onset, offset = (np.asarray(part, float) for part in score)
    times = score.events()
    count, events = len(bands), len(times)
    if bands.ndim != 2 or not events or len(pitch) != len(onset) or len(onset) != len(offset):
        raise RefusedValue(
            f"`bands` has shape {bands.shape}, the score {len(pitch)} pitches, "
            f"{len(onset)} onsets and {len(offset)} offsets; give one of each per note."
        )
    if np.any(offset <= onset):
        at = int(np.argmax(offset <= onset))
        raise RefusedValue(
            f"note {at} of `score` begins at {onset[at]} and ends at {offset[at]}; a note "
            "must end after it begins."
        )
    ends = np.append(times[1:], offset.max())
    tempo = count / max((ends[-1] - times[0]), 1e-9)  # frames per second of the score
    usual = np.maximum((ends - times) * tempo, 1.0)
    least = np.maximum(np.floor(usual * shortest), 1)
    loud = lambda notes, harmonic: _energy(bands, lowest, pitch[notes], harmonic)
    starting = [np.flatnonzero(onset == time) for time in times]
    energy = np.array([[loud(notes, h) for h in _HARMONICS[:3]] for notes in starting])  # [K, 3, T]
    first, second = _derivatives(energy)
    around = bands.mean(1)
    inside = []
    for time in times:
        notes = np.flatnonzero((onset <= time + 1e-6) & (offset > time + 1e-6))
        heard = np.mean([loud(notes, h) for h in _HARMONICS], axis=0)
        inside.append(heard - around)
    far = (ends - times > _TOGETHER) & (np.append(np.inf, np.diff(times)) > _TOGETHER)
    return Recording(
        np.concatenate([energy, first, second], axis=1).transpose(0, 2, 1),
        np.array(inside)[:, :, None],
        np.zeros((events, lengths, 0)),
        usual,
        far.astype(float),
        least,
        np.asarray(float(count)),
        np.asarray(float(events)),
    )


@public
def log_mel(wave: Wave, rate: float, bands: int = 26, hop: float = 0.01) -> np.ndarray:
    """Logarithms of the energy in `bands` mel bands and of the whole energy, a row per frame.

    rate: samples per second.
    hop: seconds between frames. Frame t begins at t * hop and lasts 25 ms.
    """
    wave = _checked_wave(wave, rate, hop)
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
    wave = _checked_wave(wave, rate, hop)
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


def _all_events(
    phones: Sequence[ArrayLike], lengths: Sequence[ArrayLike], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """All events of all recordings: their phones and their lengths."""
    check.count("count", count)
    for name, given in (("phones", phones), ("lengths", lengths)):
        check.iterable(name, given)
    sizes = [np.shape(one) for one in phones], [np.shape(one) for one in lengths]
    if sizes[0] != sizes[1] or not sizes[0] or any(len(size) != 1 for size in sizes[0]):
        raise RefusedValue(
            f"`phones` has the shapes {sizes[0][:3]}, `lengths` {sizes[1][:3]}; give one "
            "list of each per recording, with one entry per event."
        )
    every = np.concatenate([np.asarray(one) for one in phones])
    fine = every.dtype.kind in "iu" and len(every) and every.min() >= 0 and every.max() < count
    if not fine:
        raise RefusedValue(
            f"`phones` must be integers from 0 to {count - 1}, got "
            f"{np.unique(every)[:5].tolist()}; number the phones from 0, or raise `count`."
        )
    lasts = np.concatenate([np.asarray(one) for one in lengths])
    return every, check.positive("lengths", lasts, each=True).astype(float)


def _check_speech(
    frames: np.ndarray, phones: np.ndarray, confidences: np.ndarray, lengths: Lengths, longest: int
) -> None:
    known = len(lengths.mean)
    if frames.ndim != 2 or len(confidences) != len(frames):
        raise RefusedValue(
            f"`frames` has shape {frames.shape} and there are {len(confidences)} rows of "
            "confidences; give one row of each per frame."
        )
    if phones.ndim != 1 or not len(phones) or phones.dtype.kind not in "iu":
        raise RefusedValue("`phones` must be a list of numbers of phones, not empty.")
    if phones.min() < 0 or phones.max() >= known or np.shape(confidences)[1] != known:
        raise RefusedValue(
            f"phones lie in {phones.min()}..{phones.max()}, there are {known} lengths and "
            f"{np.shape(confidences)[1]} confidences per frame; number the phones from 0."
        )
    check.count("longest", longest)


_HARMONICS = np.round(12 * np.log2([1, 2, 3, 4])).astype(int)  # in semitones above the pitch
_TOGETHER = 0.06  # seconds


def _energy(bands: np.ndarray, lowest: int, pitch: np.ndarray, harmonic: int) -> np.ndarray:
    """The mean energy of a harmonic of some notes, per frame."""
    place = np.round(pitch + harmonic - lowest).astype(int)
    legal = place[(place >= 0) & (place < bands.shape[1])]
    return bands[:, legal].mean(1) if len(legal) else np.full(len(bands), bands.min())


def _derivatives(energy: np.ndarray, reach: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The first two derivatives of a parabola fitted to 2 * reach + 1 frames."""
    steps = np.arange(-reach, reach + 1)
    powers = np.stack([np.ones_like(steps), steps, steps**2], axis=1).astype(float)
    fit = np.linalg.pinv(powers)
    wide = np.pad(energy, ((0, 0), (0, 0), (reach, reach)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(wide, len(steps), axis=2)
    return around @ fit[1], 2 * (around @ fit[2])


def _spectrum(
    wave: Wave, rate: float, hop: float, length: float, window: Callable, finer: int = 1
) -> np.ndarray:
    """The power spectrum of each frame."""
    size, step = round(length * rate), round(hop * rate)
    count = 1 + max(0, len(wave) - size) // step
    points = finer << (size - 1).bit_length()
    starts = np.arange(count) * step
    frames = wave[starts[:, None] + np.arange(size)] * window(size)
    return np.abs(np.fft.rfft(frames, points)) ** 2


def _checked_wave(wave: Wave, rate: float, hop: float) -> Wave:
    wave = np.asarray(wave)
    check.array("wave", wave, 1)
    rate, hop = check.positive("rate", rate), check.positive("hop", hop)
    if not hop * rate >= 1 or len(wave) < 0.1 * rate:
        raise RefusedValue(
            f"{len(wave)} samples at {rate} per second, {hop} s per frame: give at least "
            "a tenth of a second, and at least one sample per frame."
        )
    return wave.astype(float)
