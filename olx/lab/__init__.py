"""The lab: data sets, experiments described by configs, results on disk, reports."""
