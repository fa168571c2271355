"""Dual ascent rules: how a primal-dual learner changes its dual vectors after a round."""

from olx.frameworks.ascents.aggressive import aggressive as aggressive
from olx.frameworks.ascents.aggressive_signs import aggressive_signs as aggressive_signs
from olx.frameworks.ascents.base import Ascent as Ascent
from olx.frameworks.ascents.base import Problem as Problem
from olx.frameworks.ascents.conservative import conservative as conservative
from olx.frameworks.ascents.mini_updates import mini_updates as mini_updates
from olx.frameworks.ascents.subgradient import subgradient as subgradient
from olx.frameworks.ascents.uniform import uniform as uniform
from olx.frameworks.ascents.window import follow_the_leader as follow_the_leader
from olx.frameworks.ascents.window import window as window
