"""The tasks of the lab: outcomes, decisions, losses, metrics and baselines."""
