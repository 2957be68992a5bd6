"""TensorFlow's op types by names of their inputs and outputs: what `signatures.txt` says.

A line is "Op(input, input) output, output". Behind a name, "*N" says that it stands for as many
tensors as the attribute N says, "@T" for one per dtype of the attribute T, "&" that it is a
variable and not its value. "| theirs=ours" follows where an attribute's name is not that of the
argument of `fs.raw_ops`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.op import MAX_OUTPUTS


@frozen
class Argument:
    """An input or output of an op type.

    Attributes:
        name: Its name.
        count: The attribute that says how many tensors it is; "" for one.
        dtypes: The attribute that lists the dtypes of its tensors; "" for none.
        is_variable: Whether it is a variable, not its value.
    """

    name: str
    count: str = ""
    dtypes: str = ""
    is_variable: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it stands for a list of tensors."""
        return bool(self.count or self.dtypes)

    def length(self, attributes: Mapping[str, Any]) -> int:
        """Returns how many tensors it stands for.

        Raises:
            InvalidArgumentError: if the attributes do not say so.
        """
        if not self.is_list:
            return 1
        given = attributes.get(self.count or self.dtypes)
        if self.dtypes and isinstance(given, list):
            return len(given)
        if self.count and type(given) is int and 0 <= given <= MAX_OUTPUTS:
            return given
        raise InvalidArgumentError(
            f"expected the attribute {self.count or self.dtypes} to say how many tensors "
            f"{self.name} is, got {given!r}"
        )


@frozen
class OpSignature:
    """The inputs and outputs of an op type, and arguments by the attributes that they stand for."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    renamed: dict[str, str]


def signature(op: str) -> OpSignature | None:
    """Returns the signature of TensorFlow's op type; None if it is not known."""
    return _all().get(op)


@functools.cache
def _all() -> dict[str, OpSignature]:
    found = {}
    for line in Path(__file__).with_name("signatures.txt").read_text("utf-8").splitlines():
        head, _, outputs = line.partition(")")
        outputs, _, renamed = outputs.partition(" | ")
        name, _, inputs = head.partition("(")
        pairs = [word.partition("=")[::2] for word in renamed.replace(",", " ").split()]
        found[name] = OpSignature(_arguments(inputs), _arguments(outputs), dict(pairs))
    return found


def _arguments(text: str) -> tuple[Argument, ...]:
    return tuple([_argument(word) for word in text.replace(",", " ").split()])


def _argument(word: str) -> Argument:
    name, _, count = word.partition("*")
    name, _, dtypes = name.partition("@")
    return Argument(name.rstrip("&"), count, dtypes, name.endswith("&"))


__all__ = ["Argument", "OpSignature", "signature"]
