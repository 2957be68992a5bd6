"""Which control flow there is: operations that own blocks, as TensorFlow's second version has."""

from __future__ import annotations

from flowscope.errors import UnimplementedError

__all__ = ["control_flow_v2_enabled", "disable_control_flow_v2", "enable_control_flow_v2"]


def control_flow_v2_enabled() -> bool:
    """Returns True: `cond` and `while_loop` make operations that own blocks."""
    return True


def enable_control_flow_v2() -> None:
    """Does nothing, for `control_flow_v2_enabled` is True."""


def disable_control_flow_v2() -> None:
    """Refuses.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError(
        "cond and while_loop make operations that own blocks: fs.raw_ops has Switch, Merge, Enter, "
        "Exit and NextIteration for graphs made by hand"
    )
