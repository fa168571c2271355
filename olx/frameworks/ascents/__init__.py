"""Dual ascent rules: how a primal-dual learner changes its dual vectors after a round."""

from olx.frameworks.ascents.base import Ascent as Ascent
from olx.frameworks.ascents.base import Problem as Problem
from olx.frameworks.ascents.base import conservative as conservative
from olx.frameworks.ascents.base import subgradient as subgradient
from olx.frameworks.ascents.base import uniform as uniform
from olx.frameworks.ascents.optimal import aggressive as aggressive
from olx.frameworks.ascents.optimal import aggressive_signs as aggressive_signs
from olx.frameworks.ascents.optimal import follow_the_leader as follow_the_leader
from olx.frameworks.ascents.optimal import mini_updates as mini_updates
from olx.frameworks.ascents.optimal import window as window
