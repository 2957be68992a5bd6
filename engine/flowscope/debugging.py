"""Finding out what a graph does, without running it; and checks of its values while it runs."""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.graph.races import (
    Race as Race,
    Races as Races,
    variable_races as variable_races,
)
from flowscope.ops.core.type_checks import *
from flowscope.ops.host.checks import *
from flowscope.ops.host.checks import (
    assert_all_finite as assert_all_finite,
    assert_shapes as assert_shapes,
)
from flowscope.ops.math.arithmetic import (
    is_non_decreasing as is_non_decreasing,
    is_strictly_increasing as is_strictly_increasing,
)
from flowscope.ops.math.elementwise import (
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
)

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
