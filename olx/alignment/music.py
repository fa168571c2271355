r"""Music: the features of an alignment of a score with its performance.

An event is a set of notes of the score that begin together. With the energies $E_h(t)$ of its
notes in the semitone bands of the harmonics $h = 1, 2, 3$ of their pitches:

- `start` (9): $E_h$, and its first and second derivative from a parabola fitted around the frame;
- `inside` (1): how well the notes that sound in the score explain the frame: the mean energy in
  the bands of their harmonics minus the mean over all bands. The thesis has no such feature; it is
  needed where several notes sound at once;
- tempo (1): $(r_i - r_{i-1})^2$ with $r_i = l_i / (s_{i+1} - s_i)$ for the score times $s_i$. It is
  0 where two events of the score are at most 60 ms apart.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 9.6.
"""

from typing import Any, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.alignment.recording import Recording

_HARMONICS = np.round(12 * np.log2([1, 2, 3, 4])).astype(int)  # in semitones above the pitch
_TOGETHER = 0.06  # seconds


class Score(NamedTuple):
    """The notes of a score, in any order."""

    pitch: Any  # MIDI pitches
    onset: Any  # seconds
    offset: Any  # seconds

    def events(self) -> np.ndarray:
        """The times at which notes begin, each once."""
        return np.unique(np.asarray(self.onset, float))


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
