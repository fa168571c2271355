"""Step sizes that change as the game goes on."""

from olx.schedules.decay import decay as decay
