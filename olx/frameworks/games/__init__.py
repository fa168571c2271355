"""Repeated games on maxima of hinges: what is played, and how the player changes its dual."""

from olx.frameworks.games.base import Game as Game
from olx.frameworks.games.base import HingeRule as HingeRule
from olx.frameworks.games.base import Hinges as Hinges
from olx.frameworks.games.kinds import examples as examples
from olx.frameworks.games.kinds import labels as labels
from olx.frameworks.games.kinds import rows as rows
from olx.frameworks.games.kinds import signs as signs
from olx.frameworks.games.rules import averaged_steps as averaged_steps
from olx.frameworks.games.rules import projected_ascent as projected_ascent
from olx.frameworks.games.rules import worst_hinge as worst_hinge
