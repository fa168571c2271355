"""The lab: data sets, experiments described by configs, results on disk, reports."""

from olx.lab.comparing import compare as compare
