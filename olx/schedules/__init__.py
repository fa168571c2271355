"""Schedules: step sizes that are tuned to the game or change over time."""

from olx.schedules.fixed import decay as decay
from olx.schedules.fixed import lipschitz_horizon as lipschitz_horizon
from olx.schedules.fixed import self_bounded as self_bounded
from olx.schedules.mistakes import mistakes as mistakes
from olx.schedules.mistakes import structured as structured
from olx.schedules.roots import bounded_loss as bounded_loss
from olx.schedules.roots import own_loss as own_loss
from olx.schedules.roots import root_lipschitz as root_lipschitz
from olx.schedules.roots import root_norms as root_norms
from olx.schedules.roots import root_rounds as root_rounds
