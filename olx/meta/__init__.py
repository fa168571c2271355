"""Learners made of learners, and decisions to keep after a run: means, draws, candidates."""

from olx.meta.adaptive import flh as flh
from olx.meta.adaptive import saol as saol
from olx.meta.add_learners import add_learners as add_learners
from olx.meta.ader import ader as ader
from olx.meta.anytime import anytime as anytime
from olx.meta.average import average as average
from olx.meta.average import averaged as averaged
from olx.meta.average import rising as rising
from olx.meta.cbce import cbce as cbce
from olx.meta.constrained import constrained as constrained
from olx.meta.delayed import Delayed as Delayed
from olx.meta.delayed import delayed as delayed
from olx.meta.direction_and_magnitude import direction_and_magnitude as direction_and_magnitude
from olx.meta.mechanic import mechanic as mechanic
from olx.meta.mix import mix as mix
from olx.meta.online_to_nonconvex import online_to_nonconvex as online_to_nonconvex
from olx.meta.random_stop import candidates as candidates
from olx.meta.random_stop import random_stop as random_stop
from olx.meta.random_stop import restarts as restarts
from olx.meta.random_stop import stopped as stopped
from olx.meta.random_stop import validated as validated
from olx.meta.schedule_free import schedule_free as schedule_free
from olx.meta.sword import sword as sword
