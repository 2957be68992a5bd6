"""Has the verifier look at every program that planning makes, behind each pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

#: The passes of `flowscope.plan.plan`, those before the order is there first.
UNORDERED = ("prune", "inline", "join")
ORDERED = (
    "order", "trim", "invariants", "parts", "products", "simplify", "place", "overlap", "updates",
)  # fmt: skip
#: Larger programs are left alone: tests that make them measure how long planning takes.
MOST_NODES = 2000


def verify_all_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the verifier behind every pass."""
    from flowscope.plan import plan
    from flowscope.plan.verify import verify

    def verified(run: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(run)
        def checked(*args: Any, **kwargs: Any) -> Any:
            program = run(*args, **kwargs)
            if len(program.nodes) <= MOST_NODES:
                verify(program, name, name in ORDERED)
            return program

        return checked

    for name in (*UNORDERED, *ORDERED):
        monkeypatch.setattr(plan, name, verified(getattr(plan, name), name))


__all__ = ["ORDERED", "UNORDERED", "verify_all_plans"]
