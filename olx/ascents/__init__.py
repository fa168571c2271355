"""Dual ascent rules: how a primal-dual learner moves once a round is over."""

from olx.ascents.aggressive import aggressive as aggressive
from olx.ascents.aggressive_signs import aggressive_signs as aggressive_signs
from olx.ascents.base import Ascent as Ascent
from olx.ascents.base import Problem as Problem
from olx.ascents.conservative import conservative as conservative
from olx.ascents.mini_updates import mini_updates as mini_updates
from olx.ascents.subgradient import subgradient as subgradient
from olx.ascents.window import follow_the_leader as follow_the_leader
from olx.ascents.window import window as window
