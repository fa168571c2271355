"""Pictures of a `Run`, of one run or of a sweep, and of a `Certificate`, as axes of matplotlib.

`Run.plot` and `Certificate.plot` call these functions. matplotlib is loaded when a picture is
drawn, and comes with the extra `lab`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from olx._refusal import RefusedImport, RefusedType, RefusedValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 100  # times the least total: larger ones leave the picture
WIDE = 20  # an axis whose largest value is so many times its smallest one is drawn in logarithms


def plot_run(run: Any, ax: "Axes | None" = None) -> "Axes":
    """The mean loss after each round that was kept."""
    if run.curve is None:
        total = np.cumsum(np.asarray(run.losses, float), -1)
        at = np.arange(1, total.shape[-1] + 1)
    else:
        at, total = np.asarray(run.curve.at), np.asarray(run.curve.total, float)
    if total.ndim != 1:
        raise RefusedType(
            f"a picture shows one run, got losses of shape {total.shape}; choose one: "
            "jax.tree.map(lambda leaf: leaf[i], run)."
        )
    ax = _axes(ax)
    ax.plot(at, total / at, marker="o" if len(at) == 1 else None)
    ax.set(xlabel="round", ylabel="mean loss so far")
    return ax


def plot_sweep(run: Any, names: Sequence[str], ax: "Axes | None" = None) -> "Axes":
    """The total loss against one or two arguments; of the others, the best values.

    A total above `FAR` times the least one is a cross, as one that diverged.

    names: the arguments; all of them if there are one or two and none is given.
    """
    axes = {name: np.asarray(values, float) for name, values in (run.axes or {}).items()}
    names = names or tuple(axes)
    if unknown := set(names) - set(axes):
        raise RefusedValue(f"there is no axis {min(unknown)!r}; it is {', '.join(axes)}.")
    if not 1 <= len(names) <= 2:
        raise RefusedType(
            f"a picture shows one or two arguments, got {len(names)}; name them, as in "
            f"runs.plot({', '.join(map(repr, list(axes)[:2]))})."
        )
    if any(axes[name].ndim != 1 for name in names):
        raise RefusedValue("an argument that is a vector cannot be drawn; name others.")
    total = np.asarray(run.total, float)
    points, best = _best_of_the_others(np.stack([axes[name] for name in names], 1), total)
    best, lost = _near(best)
    draw = _draw_line if len(names) == 1 else _draw_map
    return draw(_axes(ax), names, points, best, lost)


def plot_certificate(proof: Any, ax: "Axes | None" = None) -> "Axes":
    """Both sides of a theorem, and its published right side, after each round that was kept."""
    if np.ndim(proof.left) != 1:
        raise RefusedType(
            f"a picture shows the certificate of one run, got sides of shape {proof.left.shape}; "
            "choose one: jax.tree.map(lambda leaf: leaf[i], certificate)."
        )
    ax = _axes(ax)
    at = np.arange(1, proof.left.size + 1) if proof.at is None else np.asarray(proof.at)
    sides = {"left side": proof.left, "right side": proof.right, "published": proof.published}
    for (name, side), style in zip(sides.items(), ("-", "--", ":"), strict=True):
        if side is not None and np.isfinite(side).any():
            ax.plot(at, np.where(np.isfinite(side), side, np.nan), style, label=name)
    seen = proof.summary
    for name, first in {"fails": int(seen.failed), "diverged": int(seen.diverged)}.items():
        if first:
            ax.axvline(first, color="C3", label=f"{name} in round {first}")
    for condition, first in seen.reasons.items():
        said = f"says nothing from round {first}: {condition}"
        ax.axvline(first, color="0.5", ls=":", label=said)
    ax.set(xlabel="round", title=proof.theorem)
    ax.legend()
    return ax


def plot_certificates(proofs: Sequence[Any]) -> "list[Axes]":
    """A picture for each theorem, one below the other."""
    figure = _pyplot().figure(figsize=(6.4, 3.6 * len(proofs)), layout="constrained")
    below = figure.subplots(len(proofs), squeeze=False)[:, 0]
    return [plot_certificate(proof, ax) for proof, ax in zip(proofs, below, strict=True)]


def _best_of_the_others(points: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each point once, with its smallest finite total; NaN where all runs diverged."""
    each, where = np.unique(points, axis=0, return_inverse=True)
    best = np.full(len(each), np.inf)
    np.minimum.at(best, where.reshape(-1), np.where(np.isfinite(total), total, np.inf))
    return each, np.where(np.isfinite(best), best, np.nan)


def _near(best: np.ndarray) -> tuple[np.ndarray, str]:
    """The totals with NaN for those that are far from the least, and how many are NaN, in words."""
    least, gone = np.min(best, initial=np.inf, where=np.isfinite(best)), np.isnan(best)
    far = best > FAR * least if least > 0 else np.zeros(len(best), bool)
    counts = {"diverged": gone.sum(), f"above {FAR} times the least": far.sum()}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return np.where(far, np.nan, best), said and f"of {len(best)}: {said}"


def _draw_line(
    ax: "Axes", names: Sequence[str], points: np.ndarray, best: np.ndarray, lost: str
) -> "Axes":
    values = points[:, 0]
    ax.plot(values, best, marker="o", ms=3)
    if lost:
        at_the_top = ax.get_xaxis_transform()
        places = values[np.isnan(best)]
        height = np.full(len(places), 0.97)
        ax.plot(places, height, "x", c="C3", transform=at_the_top, label=lost)
        ax.legend()
    ax.set(xlabel=names[0], ylabel="total loss", xscale=_scale(values), yscale=_scale(best))
    return ax


def _draw_map(
    ax: "Axes", names: Sequence[str], points: np.ndarray, best: np.ndarray, lost: str
) -> "Axes":
    """A heat map if the points are a grid, else coloured dots; a cross where there is no total."""
    from matplotlib.colors import LogNorm, Normalize

    columns, rows = (np.unique(points[:, i]) for i in range(2))
    finite = best[np.isfinite(best)]
    norm = (LogNorm if _scale(best) == "log" else Normalize)(*_limits(finite))
    if len(points) == len(columns) * len(rows):
        cells = best.reshape(len(columns), len(rows)).T
        drawn: Any = ax.pcolormesh(_edges(columns), _edges(rows), cells, norm=norm)
    else:
        drawn = ax.scatter(*points.T, c=best, norm=norm)
    if lost:
        ax.plot(*points[np.isnan(best)].T, "x", c="C3", label=lost)
        ax.legend()
    ax.figure.colorbar(drawn, ax=ax, label="total loss")
    scales: Mapping[str, Any] = {"xscale": _scale(columns), "yscale": _scale(rows)}
    ax.set(xlabel=names[0], ylabel=names[1], **scales)
    return ax


def _scale(values: np.ndarray) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() <= 0:
        return "linear"
    return "log" if finite.max() >= WIDE * finite.min() else "linear"


def _edges(values: np.ndarray) -> np.ndarray:
    """The borders of the cells around sorted values, half way on the scale that is drawn."""
    to, back = (np.log, np.exp) if _scale(values) == "log" else (np.positive, np.positive)
    middle = to(values)
    between = (middle[1:] + middle[:-1]) / 2
    first, last = (between[0], between[-1]) if between.size else (middle[0] - 1, middle[-1] + 1)
    return back(np.concatenate([[2 * middle[0] - first], between, [2 * middle[-1] - last]]))


def _limits(values: np.ndarray) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _axes(ax: "Axes | None") -> "Axes":
    return _pyplot().figure(layout="constrained").subplots() if ax is None else ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        said = "matplotlib is not installed; install the lab with pip install 'olx[lab]'."
        raise RefusedImport(said, name=error.name) from None
    return pyplot
