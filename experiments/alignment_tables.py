"""Alignment of speech and of music: tables in the form of 9.1 and 9.2, and pictures.

    OLX_DATA=... python -m experiments.alignment_tables [--out results/alignment]

Speech: the TIMIT sample, 12 speakers to learn from and 4 others to test on. The confidences of a
frame are those of a softmax regression by AdaGrad on five frames spread over 90 ms; it learns from
the same 12 speakers. Music: ten chorales, one left out at a time. The learner is the self-tuned
structured learner of figure 5.4. It passes several times over the recordings, and the weights with
the least cost on them are kept, as the thesis does for music. Synthesized speech and music, with
known boundaries, need no files.

Piano: performances of four pieces, one piece left out at a time, in frames of 50 ms. These data
hold what the keys did, not the sound; see `experiments.alignment_sounds`.
"""

import argparse
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import olx
from experiments.alignment_sounds import (
    Sound,
    chorales,
    piano,
    synthesized_music,
    synthesized_speech,
    timit,
)
from olx import alignment, structured

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TOLERANCES = (1, 2, 3, 4)  # frames of 10 ms


def scaled(sounds: list[Sound], like: list[Sound]) -> list[Sound]:
    """Features divided by their deviation over the recordings `like`."""
    rows = lambda name: np.concatenate(
        [np.concatenate(list(getattr(one.features, name))) for one in like]
    )
    size = {name: rows(name).std(0) + 1e-9 for name in ("start", "inside", "length")}
    change = lambda one: one.features._replace(
        **{name: getattr(one.features, name) / size[name] for name in size}
    )
    return [one._replace(features=change(one)) for one in sounds]


def learned(sounds: list[Sound], passes: int, complexity: float) -> tuple:
    """The structure, and the mean of the weights over some passes."""
    sizes = tuple(part.shape[-1] for part in sounds[0].features[:3])
    structure = alignment.align(*sizes)
    rounds = alignment.aligned_rounds(
        [one.features for one in sounds], [one.starts for one in sounds]
    )
    learner = structured.self_tuned_structured(structure, complexity)
    start = structure.zeros(jnp.float32)
    state = learner.init(start)
    for _ in range(passes):
        state = olx.run(learner, no_loss, rounds, start, state=state, progress=False).state
    return structure, structured.averaged_weights(state)


def no_loss(parts, outcome):
    """Nothing: the learner decodes by itself, and to decode once more would double the time."""
    return 0.0 * parts.tempo


def decoded(structure, w, sounds: list[Sound]) -> list[np.ndarray]:
    find = jax.jit(lambda w, one: structure.decode(structure.parts(w, one)))
    rounds = alignment.aligned_rounds(
        [one.features for one in sounds], [one.starts for one in sounds]
    )
    outputs = []
    for at, one in enumerate(sounds):
        row = jax.tree.map(lambda leaf, at=at: leaf[at], rounds.context)
        outputs.append(np.asarray(find(w, row))[: len(one.starts)])
    return outputs


def within(sounds: list[Sound], found: list[np.ndarray]) -> list[float]:
    """Percent of inner boundaries within each tolerance."""
    off = np.concatenate([np.abs(a - b.starts)[1:] for a, b in zip(found, sounds, strict=True)])
    return [100 * float(np.mean(off <= tolerance)) for tolerance in TOLERANCES]


def table(title: str, rows: dict[str, list[float]], heads: list[str]) -> None:
    print(f"\n{title}")
    print(" " * 44 + "".join(f"{head:>10}" for head in heads))
    for name, values in rows.items():
        print(f"{name:44}" + "".join(f"{value:10.1f}" for value in values))


def picture(path: Path, title: str, sound: Sound, found: np.ndarray, seconds: float) -> None:
    """The boundaries over the spectrogram: the truth above, what was found below."""
    figure, axes = plt.subplots(figsize=(11, 3.6), layout="constrained")
    end = len(sound.frames) * seconds
    axes.imshow(sound.frames.T, origin="lower", aspect="auto", cmap="Greys", extent=(0, end, 0, 1))
    axes.vlines(sound.starts * seconds, 0.5, 1, color="tab:blue", lw=1.2, label="truth")
    axes.vlines(found * seconds, 0, 0.5, color="tab:red", lw=1.2, label="found")
    axes.set(title=title, xlabel="seconds", yticks=[], ylabel="frequency bands")
    axes.legend(loc="upper right", framealpha=0.9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"{path} shows one recording.")


def speech(name: str, train: list[Sound], test: list[Sound], passes: int, out: Path) -> list[float]:
    train, test = scaled(train, train), scaled(test, train)
    structure, w = learned(train, passes, 10.0)
    found = decoded(structure, w, test)
    picture(out / f"{name}.png", f"{name}: a recording that was not learned from", test[0],
            found[0], 0.01)  # fmt: skip
    return within(test, found)


def milliseconds(sounds: list[Sound], found: list[np.ndarray], seconds: float) -> list[float]:
    """The mean error of each recording, its first event left out."""
    pairs = zip(found, sounds, strict=True)
    return [1000 * seconds * float(np.abs(a - b.starts)[1:].mean()) for a, b in pairs]


def music(folder: str, out: Path, seconds: float = 0.03, passes: int = 2) -> list[float]:
    """The mean error of each chorale, learned from the nine others."""
    sounds, errors = chorales(folder, seconds), []
    for left_out, own in enumerate(sounds):
        rest = sounds[:left_out] + sounds[left_out + 1 :]
        structure, w = learned(scaled(rest, rest), passes, 10.0)
        own = scaled([own], rest)
        found = decoded(structure, w, own)
        errors += milliseconds(own, found, seconds)
        print(f"chorale {left_out + 1}: {errors[-1]:.1f} ms", flush=True)
    picture(out / "chorale.png", "a chorale that was not learned from", own[0], found[0], seconds)
    return errors


def performances(
    folder: str, seconds: float = 0.05, passes: int = 1, players: int = 1
) -> list[float]:
    """The mean error of each performance of a piece, learned from those of the other pieces."""
    played, errors = piano(folder, seconds, players), []
    for piece in sorted({number for number, _ in played}):
        rest = [one for number, one in played if number != piece]
        own = scaled([one for number, one in played if number == piece], rest)
        structure, w = learned(scaled(rest, rest), passes, 10.0)
        errors += milliseconds(own, decoded(structure, w, own), seconds)
        mean = np.mean(errors[-len(own) :])
        print(f"piece {piece + 1}: {mean:.1f} ms, pianists: {len(own)}", flush=True)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/alignment"))
    out = parser.parse_args().out
    folder = os.environ.get("OLX_DATA", "")
    heads = [f"{10 * tolerance} ms" for tolerance in TOLERANCES]
    rows = {"synthesized speech, ours": speech("speech", *synthesized_speech(), 3, out)}
    if (Path(folder) / "timit_sample.npz").exists():
        rows["TIMIT sample, 4 speakers held out, ours"] = speech("timit", *timit(folder), 2, out)
    rows["  forced alignment, logistic posteriors"] = [65.1, 84.1, 90.9, 93.8]
    rows["  full TIMIT, published (2007, table 9.1)"] = [79.7, 92.1, 96.2, 98.1]
    table("Percent of boundaries within a tolerance", rows, heads)
    train, test = synthesized_music()
    structure, w = learned(scaled(train, train), 3, 10.0)
    test = scaled(test, train)
    found = decoded(structure, w, test)
    picture(out / "music.png", "music: a melody that was not learned from", test[0], found[0], 0.01)
    rows = {"synthesized melodies, ours": within(test, found)}
    table("Percent of notes within a tolerance", rows, heads)
    if (Path(folder) / "bach10.npz").exists():
        errors = music(folder, out)
        names = ["mean", "median", "largest"]
        rows = {
            "ten chorales, one left out, ours": [np.mean(errors), np.median(errors), max(errors)],
            "  score matched without learning": [52.0, np.nan, np.nan],
            "  12 piano pieces, published (2007, table 9.2)": [14.4, 10.7, 41.8],
        }
        table("Mean error of a recording in ms", rows, names)
    if (Path(folder) / "vienna4x22.npz").exists():
        errors = performances(folder)
        own = [np.mean(errors), np.median(errors), max(errors)]
        rows = {"four piano pieces, one left out, ours": own}
        table("Mean error of a performance in ms", rows, ["mean", "median", "largest"])


if __name__ == "__main__":
    main()
