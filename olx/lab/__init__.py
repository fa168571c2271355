"""The lab: data sets, experiments described by configs, results on disk, reports."""

from olx.lab.compare import compare as compare
