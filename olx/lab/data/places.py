"""Paths in a config are relative to the folder of the config."""

from pathlib import Path

from olx.lab.config import ConfigError
from olx.lab.data.readers import SUFFIXES
from olx.lab.data.sources import data_folder
from olx.lab.experiment import Data, Experiment


def beside(folder: Path, experiment: Experiment) -> Experiment:
    """The experiment with the paths of its data made absolute; tables call the data as before.

    A file that is not beside the config is looked for in the data folder, as a catalogue name is.
    """
    if experiment.data_folder is not None:
        experiment.data_folder = str((folder / experiment.data_folder).resolve())
    for i, entry in enumerate(experiment.data):
        if _is_relative_path(entry):
            _place(folder, i, entry, data_folder(experiment.data_folder))
    return experiment


def _is_relative_path(entry: Data) -> bool:
    path = Path(entry.name)
    return ":" not in entry.name and path.suffix.lower() in SUFFIXES and not path.is_absolute()


def _place(folder: Path, i: int, entry: Data, other: Path) -> None:
    if not (folder / entry.name).exists() and (other / entry.name).is_file():
        return
    if not (folder / entry.name).exists() and Path(entry.name).is_file():
        raise ConfigError(
            f"data.{i}.name: {entry.name} is not in {folder.resolve()}, the folder of the config, "
            f"but in {Path.cwd()}, the working directory; paths are relative to the config: move "
            "the file, or write the path from there."
        )
    entry.label = entry.label or entry.name
    entry.name = str((folder / entry.name).resolve())
