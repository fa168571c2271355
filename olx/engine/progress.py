"""A progress bar: rounds, rounds per second and the mean loss so far."""

import sys
from typing import Any

from tqdm import tqdm


class Progress:
    """A progress bar; if `show` is None, it is shown on a terminal only."""

    def __init__(self, show: bool | None, total: int | None, done: int):
        hidden = not sys.stderr.isatty() if show is None else not show
        self._bar: Any = None
        if not hidden:
            self._bar = tqdm(total=total, initial=done, unit=" rounds", smoothing=0.1)

    def advance(self, rounds: int, mean_loss: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {mean_loss:.4g}", refresh=False)
            self._bar.update(rounds)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
