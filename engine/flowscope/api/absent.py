"""What is said where a program asks for a name that a module does not have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from flowscope.api.public_names import PARTS


def refusal(module: str, namespace: Mapping[str, Any]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`: an error that says what to use in place of the name.

    Args:
        module: The module's name.
        namespace: What it has; the nearest names are looked for there.
    """

    def missing(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("_"):
            text += _advice(module, name, [n for n in namespace if not n.startswith("_")])
        raise AttributeError(text)

    return missing


@functools.cache
def advice_by_name() -> dict[str, str]:
    """The hint in place of each name that TensorFlow 1 has and flowscope has not."""
    from flowscope.api.absent_names import (
        ABSENT,  # at need: most programs never ask for such a name
    )

    return {name: advice for _, advice, names in ABSENT for name in names.split()}


def _advice(module: str, name: str, names: list[str]) -> str:
    part = module.partition(".")[2]
    table = advice_by_name()
    known = table.get(f"{part}.{name}" if part else name)
    if known is None:
        # TensorFlow has it elsewhere: what it is does not depend on where it is looked for.
        known = next((a for n, a in table.items() if n.rpartition(".")[2] == name), None)
    if known is not None:
        return f": {known}"
    there, near = _found_in(name, module), _near(name, names)
    # The raw op that was meant is nearer than the function that does the same.
    near = near or there if part == "raw_ops" else there or near
    return f": did you mean {near!r}?" if near else ""


def _found_in(name: str, module: str) -> str | None:
    """Returns the public name of another module under which `name` is found."""
    from flowscope.api.part_names import PART_NAMES  # at need, as above

    package, plain = import_module("flowscope"), _plain(name)
    for other in (package, *[import_module(f"flowscope.{part}") for part in PARTS.split()]):
        shown = other.__name__.replace("flowscope", "fs", 1)
        if other.__name__ == module:
            continue
        is_listed = other is package or other.__name__.rpartition(".")[2] in PART_NAMES
        names = other.__all__ if is_listed else vars(other)
        if module != "flowscope.raw_ops":
            found = name if name in names else None
        elif shown == "fs.layers":  # a raw op has no variables
            continue
        else:  # MatMul is fs.matmul
            found = next((n for n in names if n.islower() and _plain(n) == plain), None)
        if found is not None and not found.startswith("_"):
            return f"{shown}.{found}"
    return None


def _near(name: str, names: list[str]) -> str | None:
    """Returns the name that is spelled like `name` but for case, underscores or one slip.

    Not what merely resembles it: words that differ by more are other concepts.
    """
    plain = _plain(name)
    same = [n for n in names if _plain(n) == plain]
    slips = [n for n in names if len(plain) > 4 and _is_one_slip(plain, _plain(n))]
    return next(iter(same + slips), None)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _is_one_slip(a: str, b: str) -> bool:
    """Whether two words differ by one letter behind the first: another, one more or less, or two
    in turn.
    """
    if abs(len(a) - len(b)) > 1 or a[0] != b[:1]:
        return False
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest, other = a[first:], b[first:]
    turned = rest[1:2] + rest[:1] + rest[2:]
    return rest[1:] == other[1:] or rest[1:] == other or rest == other[1:] or turned == other
