"""The lab: data sets, experiments as configs, results on disk, reports."""
