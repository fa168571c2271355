"""Load data sets as streams of rounds."""

from olx.lab.data.dataset import Dataset as Dataset
from olx.lab.data.dataset import digest as digest
from olx.lab.data.dataset import table_of as table_of
from olx.lab.data.given import generators as generators
from olx.lab.data.sources import SCHEMES as SCHEMES
from olx.lab.data.sources import catalogue as catalogue
from olx.lab.data.sources import data_folder as data_folder
from olx.lab.data.sources import load as load
from olx.lab.data.sources import resolve_paths as resolve_paths
from olx.lab.data.table import Table as Table
from olx.lab.data.table import outcomes_of as outcomes_of
