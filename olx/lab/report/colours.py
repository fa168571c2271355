"""Colours of learners: as many as there are learners, each far from all others.

A colour is a pair, for white and for dark paper, of one hue. Distances are those of OKLab (Ottosson
2020), in which equal distances look about equal. The first colours are fixed; each further one is
the candidate that is farthest from all colours before it, on both papers.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

WHITE, DARK = "#ffffff", "#14181e"
FIRST = [
    *("#0b5fa5", "#c2410c", "#0f766e", "#9d174d"),
    *("#6d28d9", "#4d7c0f", "#92600a", "#374151"),
]
CONTRAST = 4.5  # to the paper, at least
DASHES = ((), (9, 4), (9, 3, 2, 3), (4, 3))  # one after the other, every len(FIRST) colours
MARKERS = "osD^v<>p"
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


class Colour(NamedTuple):
    light: str  # on white
    dark: str  # on dark paper


@functools.cache
def palette(count: int) -> tuple[Colour, ...]:
    """`count` colours; a longer palette begins with a shorter one.

    >>> palette(2)[0].light, len(set(palette(30)))
    ('#0b5fa5', 30)
    """
    chosen = [Colour(colour, _partner(lab(colour))) for colour in FIRST[:count]]
    if count <= len(FIRST):
        return tuple(chosen)
    pool, there = _candidates(), [_both(colour) for colour in chosen]
    places = np.array([_both(colour) for colour in pool])
    while len(chosen) < count:
        apart = [np.linalg.norm(places - one, axis=-1).min(axis=-1) for one in there]
        best = int(np.argmax(np.min(apart, axis=0)))
        chosen.append(pool[best])
        there.append(places[best])
    return tuple(chosen)


def look(index: int, count: int) -> dict[str, Any]:
    """The style of the curve of learner number `index` of `count`, for matplotlib."""
    turn = index // len(FIRST)
    return {
        "color": palette(max(count, index + 1))[index].light,
        "marker": MARKERS[(index + turn) % len(MARKERS)],
        "linestyle": (0, dash(index)) if dash(index) else "-",
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def dash(index: int) -> tuple[int, ...]:
    """The dashes of the line of learner number `index`; none for a whole line."""
    return DASHES[index // len(FIRST) % len(DASHES)]


def contrast(colour: str, paper: str) -> float:
    """How a colour stands out from the paper, from 1 to 21 (WCAG 2)."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    high, low = sorted((float(_linear(one) @ weights) for one in (colour, paper)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str) -> np.ndarray:
    """Lightness and two coordinates of hue."""
    return _TO_LAB @ np.cbrt(_TO_CONES @ _linear(colour))


def _linear(colour: str) -> np.ndarray:
    shown = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def _hex(place: np.ndarray) -> str | None:
    """The colour at a place of OKLab; None if no screen shows it."""
    linear = np.linalg.solve(_TO_CONES, np.linalg.solve(_TO_LAB, place) ** 3)
    if linear.min() < -1e-3 or linear.max() > 1 + 1e-3:
        return None
    linear = np.clip(linear, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(one)):02x}" for one in shown)


def _partner(place: np.ndarray) -> str:
    """The colour of the same hue for dark paper: dark ones become light."""
    lightness = 1.12 - 0.8 * place[0]
    for strength in np.linspace(1, 0, 21):
        found = _hex(np.array([lightness, *(strength * place[1:])]))
        if found is not None and contrast(found, DARK) >= CONTRAST:
            return found
    return WHITE


def _candidates() -> list[Colour]:
    found = []
    for lightness in (0.3, 0.4, 0.5, 0.56):
        for chroma in (0.06, 0.11, 0.16, 0.21):
            for angle in np.arange(0, 2 * np.pi, np.pi / 18):
                place = np.array([lightness, *(chroma * np.array([np.cos(angle), np.sin(angle)]))])
                colour = _hex(place)
                if colour is not None and contrast(colour, WHITE) >= CONTRAST:
                    found.append(Colour(colour, _partner(place)))
    return found


def _both(colour: Colour) -> np.ndarray:
    return np.array([lab(colour.light), lab(colour.dark)])
