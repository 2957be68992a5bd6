"""Arguments and fields of TensorFlow 1 that are refused, and what to do instead: one table.

What a refused argument may be all the same is what asks for nothing: None, False, 0, "". A
capability that comes lifts its line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowscope.errors import UnimplementedError


class Refused(NamedTuple):
    """One argument or field.

    Attributes:
        instead: What to do instead.
        taken: The values that are taken, for they ask for nothing that is not so.
    """

    instead: str
    taken: tuple[Any, ...] = (None, False, 0, "", b"", (), [])


#: By function or class, as users call it, and by argument or field.
REFUSED: Mapping[str, Mapping[str, Refused]] = {
    "Variable": {
        "variable_def": Refused(
            "make the variable with an initial_value, or read graphs by fs.train.import_meta_graph"
        ),
        "import_scope": Refused("it belongs to variable_def: make the variable in a name scope"),
    },
    "assign": {
        "validate_shape": Refused(
            "make the variable with validate_shape=False: it then takes values of any shape",
            (None, True),
        ),
    },
}


def refuse(owner: str, **given: Any) -> None:
    """Raises UnimplementedError for arguments whose values ask for what is refused."""
    for name, value in given.items():
        refused = REFUSED[owner][name]
        if not any(value is t or (type(value) is type(t) and value == t) for t in refused.taken):
            raise UnimplementedError(
                f"{owner}: {name}={value!r} is not supported: {refused.instead}"
            )
