r"""Speech: the seven features of a phoneme alignment.

With frames $x_t$, phones $e_i$, frame confidences $g_e(x_t)$ and lengths $l_i$ in frames:

- `start` (4): $\|x_{y_i - j} - x_{y_i + j}\|$ for $j = 1..4$, how much the sound changes there;
- `inside` (1): $g_{e_i}(x_t)$, for instance the logarithm of the posterior of the phone;
- `length` (1): the log-density of $l_i$ under a normal law with the mean and the deviation of the
  phone, $\mu_{e_i}$ and $\sigma_{e_i}$;
- tempo (1): $(r_i - r_{i-1})^2$ with $r_i = l_i / \mu_{e_i}$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 9.5.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.alignment.recording import Recording


class Lengths(NamedTuple):
    """The law of the length of each phone, in frames."""

    mean: np.ndarray  # [phones]
    deviation: np.ndarray  # [phones]


@public
def phone_lengths(phones: Sequence[Any], lengths: Sequence[Any], count: int) -> Lengths:
    """The mean and the deviation of the length of each phone.

    phones, lengths: per recording, the phone of each event and its length in frames.
    count: the number of phones. A phone that does not occur gets the law of all phones.
    """
    every, lasts = _events(phones, lengths, count)
    mean = np.full(count, lasts.mean())
    deviation = np.full(count, lasts.std())
    for phone in range(count):
        own = lasts[every == phone]
        if len(own) > 1:
            mean[phone], deviation[phone] = own.mean(), max(own.std(), 0.1 * own.mean())
    return Lengths(mean, np.maximum(deviation, 1.0))


@public
def speech_recording(
    frames: np.ndarray,
    phones: Any,
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
    _check(frames, phones, confidences, lengths, longest)
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


def _events(phones: Any, lengths: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
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


def _check(frames, phones, confidences, lengths: Lengths, longest: int) -> None:
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
