"""Load data sets as streams of rounds."""

from olx.lab.data.catalogue import catalogue as catalogue
from olx.lab.data.dataset import Dataset as Dataset
from olx.lab.data.digest import digest as digest
from olx.lab.data.sources import data_folder as data_folder
from olx.lab.data.sources import load as load
from olx.lab.data.table import Table as Table
