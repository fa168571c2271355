"""The recordings of `experiments.alignment_tables`, with their features."""

from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import olx
from olx import alignment

LOWEST, HIGHEST = 28, 120  # MIDI pitches of a piano
REACH = (-4, -2, 0, 2, 4)  # frames that a phone is known from


class Sound(NamedTuple):
    """A recording with its truth, and the frames to draw."""

    features: alignment.Recording
    starts: np.ndarray  # in frames
    frames: np.ndarray


def wide(frames: np.ndarray) -> np.ndarray:
    """The frames around each frame, side by side, and 1."""
    at = lambda shift: frames[np.clip(np.arange(len(frames)) + shift, 0, len(frames) - 1)]
    return np.column_stack([*map(at, REACH), np.ones(len(frames))])


def frame_classifier(frames: list, labels: list, classes: int, passes: int = 6):
    """A function from the frames of a recording to log p(phone | frame) - log p(phone)."""
    x, y = np.concatenate(list(map(wide, frames))), np.concatenate(labels)
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    mean[-1], deviation[-1] = 0.0, 1.0
    scaled = ((x - mean) / deviation).astype(np.float32)
    prior = np.bincount(y, minlength=classes) + 1.0
    learner = olx.linear(olx.first_order.adagrad(0.05))
    state = None
    draw = np.random.default_rng(0)
    for _ in range(passes):
        order = draw.permutation(len(y))
        rounds = olx.Rounds(scaled[order], y[order].astype(np.int32))
        start = jnp.zeros((classes, x.shape[1]), jnp.float32)
        run = olx.run(
            learner, olx.losses.cross_entropy, rounds, start, state=state, keep=olx.keep.totals
        )
        state = run.state
    w = np.asarray(learner.hparams.inner.predict(state))

    def confidences(frames: np.ndarray) -> np.ndarray:
        scores = ((wide(frames) - mean) / deviation) @ w.T
        scores -= scores.max(1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        return log_p - np.log(prior / prior.sum())

    return confidences


def apart(starts: np.ndarray, frames: int) -> np.ndarray:
    """The starts, moved so that every event lasts at least one frame."""
    steps = np.arange(len(starts))
    rising = np.maximum.accumulate(starts - steps) + steps
    return np.minimum(rising, frames - len(starts) + steps)


def timit(folder: str) -> tuple[list[Sound], list[Sound]]:
    """The TIMIT sample: recordings of speakers 0 to 11, and of speakers 12 to 15."""
    data = np.load(Path(folder) / "timit_sample.npz")
    names, fold = np.unique(data["label39_names"], return_inverse=True)
    frames = data["X"] * float(data["scale"])
    clips, said, begins, marks = [], [], [], []
    for at in range(len(data["offsets"]) - 1):
        clip = frames[data["offsets"][at] : data["offsets"][at + 1]]
        part = slice(data["seg_offsets"][at], data["seg_offsets"][at + 1])
        label, start = data["seg_label"][part], data["seg_start"][part] / 160
        phone, start = fold[label], np.round(start).astype(int)
        start = apart(start, len(clip))
        for kept, one in ((clips, clip), (said, phone), (begins, start)):
            kept.append(one)
        marks.append(np.repeat(phone, np.diff(np.append(start, len(clip)))))
    train = [at for at in range(len(clips)) if data["speaker"][at] < 12]
    test = [at for at in range(len(clips)) if data["speaker"][at] >= 12]
    pick = lambda things: [things[at] for at in train]
    confidences = frame_classifier(pick(clips), pick(marks), len(names))
    lasting = [np.diff(np.append(b, len(c))) for b, c in zip(begins, clips, strict=True)]
    law = alignment.phone_lengths(pick(said), pick(lasting), len(names))
    longest = int(max(map(max, lasting)))
    sounds = []
    for clip, phone, start in zip(clips, said, begins, strict=True):
        features = alignment.speech_recording(clip, phone, confidences(clip), law, longest)
        sounds.append(Sound(features, start, clip))
    return [sounds[at] for at in train], [sounds[at] for at in test]


def chorales(folder: str, seconds: float = 0.03) -> list[Sound]:
    """The ten chorales; an event is a time of the score at which a note begins."""
    data = np.load(Path(folder) / "bach10.npz")
    step = round(seconds / 0.01)
    sounds = []
    for at in range(len(data["offsets"]) - 1):
        bands = data["X"][data["offsets"][at] : data["offsets"][at + 1]] * float(data["scale"])
        bands = bands[: len(bands) // step * step].reshape(-1, step, bands.shape[1]).mean(1)
        own = slice(data["note_offsets"][at], data["note_offsets"][at + 1])
        score, heard = data["score_onset_ms"][own] / 1000, data["note_onset_ms"][own] / 1000
        pitch, voice = data["note_pitch"][own], data["note_part"][own]
        last = score.max() + np.median(np.diff(np.unique(score)))
        ends = np.empty_like(score)
        for part in np.unique(voice):
            here = np.flatnonzero(voice == part)
            here = here[np.argsort(score[here])]
            ends[here] = np.append(score[here][1:], last)
        notes = alignment.Score(pitch, score, ends)
        starts = [heard[score == time].mean() for time in notes.events()]
        frames = np.round(np.array(starts) / seconds).astype(int)
        sounds.append(cut(bands, int(data["band_midi"][0]), notes, frames, seconds))
    return sounds


def cut(
    bands, lowest: int, notes: alignment.Score, starts, seconds: float, least=0.4, most=3.6
) -> Sound:
    """The recording from its first event on.

    least: the shortest length of an event, as a share of its length in the score.
    most: the seconds that a note may be held, or a little more.
    """
    first = starts[0]
    bands, starts = bands[first:], starts - first
    features = alignment.music_recording(bands, lowest, notes, least, round(most / seconds))
    return Sound(features, starts, bands)


def synthesized_speech(count: int = 60) -> tuple[list[Sound], list[Sound]]:
    """Speech-like sound: two thirds of the recordings to learn from, the others to test on."""
    spoken = [olx.streams.spoken(seed) for seed in range(count)]
    frames = [alignment.log_mel(one.wave, 16_000) for one in spoken]
    begins = [np.round(one.starts / 0.01).astype(int) for one in spoken]
    begins = [
        np.minimum(b, len(f) - np.arange(len(b), 0, -1))
        for b, f in zip(begins, frames, strict=True)
    ]
    lasting = [np.diff(np.append(b, len(f))) for b, f in zip(begins, frames, strict=True)]
    marks = [np.repeat(one.phones, last) for one, last in zip(spoken, lasting, strict=True)]
    split = count * 2 // 3
    confidences = frame_classifier(frames[:split], marks[:split], 8)
    law = alignment.phone_lengths([one.phones for one in spoken[:split]], lasting[:split], 8)
    sounds = [
        Sound(alignment.speech_recording(f, one.phones, confidences(f), law, 48), b, f)
        for one, f, b in zip(spoken, frames, begins, strict=True)
    ]
    return sounds[:split], sounds[split:]


def synthesized_music(count: int = 30) -> tuple[list[Sound], list[Sound]]:
    """Music-like sound, in frames of 10 ms."""
    sounds = []
    for seed in range(count):
        one = olx.streams.played(seed)
        bands = alignment.semitones(one.wave, 16_000)
        starts = np.round(one.starts / 0.01).astype(int)
        notes = alignment.Score(one.pitch, one.onset, one.offset)
        sounds.append(Sound(alignment.music_recording(bands, 36, notes, 0.4, 128), starts, bands))
    split = count * 2 // 3
    return sounds[:split], sounds[split:]


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
