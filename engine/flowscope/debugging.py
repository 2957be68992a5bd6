"""Finding out what a graph does, without running it."""

from flowscope.graph.races import (
    Race as Race,
    Races as Races,
    variable_races as variable_races,
)
