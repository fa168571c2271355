"""Settings of the measurements."""

from typing import NamedTuple


class Settings(NamedTuple):
    rounds: int = 5  # of every race
    quick: bool = False  # small sizes, to see that everything runs
    folder: str = "."  # for files that are thrown away afterwards

    def size(self, full: int, quick: int) -> int:
        return min(full, quick) if self.quick else full
