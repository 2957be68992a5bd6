"""The native hand-over, as its assembly stands: each block once, in many orders of threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from llvm_steps import Machine

from flowscope.runtime.threads import native_code as code

STATE, RECIPE, ACQUIRE, RELEASE, YIELD, LOCK = 0x10000, 0x20000, 0x30000, 0x31000, 0x32000, 0x40000
BLOCKS, HELPERS = 3, 2
#: Orders per test.
ORDERS = 60


class Native:
    """Callers and helpers that run the assembly, in an order that follows from a seed."""

    def __init__(self, seed: int, patience: int, change: tuple[str, str] | None = None) -> None:
        text = code._text("test", "i64")
        if change is not None:
            assert text.count(change[0]) == 1
            text = text.replace(*change)
        outside: Any = {
            "block": self.block, ACQUIRE: self.acquire, RELEASE: self.release, YIELD: self.give_way,
        }  # fmt: skip
        self.machine = Machine(text, outside)
        self.random = random.Random(seed)
        self.tokens: dict[int, int] = {}
        self.begun: dict[int, list[int]] = {}
        self.ended: dict[int, set[int]] = {}
        memory = self.machine.memory
        for place, value in (
            (code.ACQUIRE, ACQUIRE), (code.RELEASE, RELEASE), (code.YIELD, YIELD),
            (code.SLEEP_US, 1), (code.YIELDS, 1),
        ):  # fmt: skip
            memory[STATE + 8 * place] = value
        for h in range(code.MOST):
            at = code.HELPER + h * code.HELPER_WORDS + code.LOCK
            memory[STATE + 8 * at] = LOCK + h
        memory[RECIPE + 8 * code.AT["blocks"]] = BLOCKS
        memory[RECIPE + 8 * code.AT["patience"]] = patience
        self.threads: list[Iterator[None]] = []
        self.callers = 0

    def _outputs(self) -> tuple[int, ...]:
        return tuple(self.machine.memory[STATE + 8 * at] for at in (code._A, code._B, code._C))

    def block(self, state: int, index: int) -> Iterator[None]:
        """Computes a block: what it is given must not change meanwhile."""
        given = self._outputs()
        self.begun.setdefault(given[2], []).append(index)
        for _ in range(self.random.randrange(6)):
            yield
            assert self._outputs() == given, "a block is computed of another job's arrays"
        self.ended.setdefault(given[2], set()).add(index)

    def acquire(self, lock: int, microseconds: int, interrupts: int) -> Iterator[None]:
        """Sleeps on a lock; it may run out of time."""
        may_end = not microseconds >> 63
        while not self.tokens.get(lock):
            yield
            if may_end and self.random.random() < 0.1:
                return 0  # type: ignore[return-value]
        self.tokens[lock] -= 1
        return 1  # type: ignore[return-value]

    def release(self, lock: int) -> Iterator[None]:
        """Wakes who sleeps on a lock."""
        yield
        self.tokens[lock] = self.tokens.get(lock, 0) + 1
        assert self.tokens[lock] == 1, "a helper is woken twice"

    def give_way(self) -> Iterator[None]:
        yield
        return 0  # type: ignore[return-value]

    def call(self, number: int) -> Iterator[None]:
        """Multiplies some times; checks after each what has been computed."""
        for job in range(3):
            x, y, z = [0x100000 + 0x1000 * (3 * (3 * number + job) + i) for i in range(3)]
            for array in (x, y, z):
                self.machine.memory[array + object.__basicsize__] = array
            given = (STATE, RECIPE, x, y, z, HELPERS)
            late = yield from self.machine.run("product", given)  # type: ignore[misc]
            self.told(late)
            begun, ended = self.begun.get(z, []), self.ended.get(z, set())
            if late == (1 << 64) - 1:
                assert not begun, "a job that was refused is computed"
                continue
            assert sorted(begun) == list(range(BLOCKS)), f"blocks were computed: {begun}"
            missing = set(range(BLOCKS)) - ended
            assert all(late >> i & 1 for i in missing), "a block is missing that is not told late"
        self.callers -= 1
        if not self.callers:
            yield from self.machine.run("stop", (STATE,))

    def told(self, late: int) -> None:
        """Is told what a product has returned."""

    def run(self, callers: int) -> None:
        self.callers = callers
        threads = [self.call(i) for i in range(callers)]
        threads += [self.machine.run("help", (STATE, h)) for h in range(HELPERS)]
        left, steps = list(threads), 0
        chance, current = self.random.choice((0.05, 0.3, 1.0)), threads[0]
        while left:
            if current not in left or self.random.random() < chance:
                current = self.random.choice(left)
            steps += 1
            assert steps < 200_000, "somebody waits for ever"
            try:
                next(current)
            except StopIteration:
                left.remove(current)


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0, 3, 1000])
@pytest.mark.parametrize("callers", [1, 2])
def test_each_block_is_computed_once(patience: int, callers: int) -> None:
    for seed in range(ORDERS):
        Native(seed, patience).run(callers)


DEFECTS = {
    "a helper is inside once it has taken a block": (
        "  store atomic i64 %last, ptr %in.p seq_cst, align 8\n",
        "",
    ),
    "a job begins though a helper is inside": (
        "  %no.1 = or i1 %still, %same\n",
        "  %no.1 = or i1 %same, %same\n",
    ),
    "a helper takes a block that it has not swapped": (
        "  br i1 %taken, label %run, label %leave\n",
        "  br i1 %is.work, label %run, label %leave\n",
    ),
}


def _with(defect: tuple[str, str]) -> None:
    for seed in range(4 * ORDERS):
        for patience in (0, 3):
            Native(seed, patience, defect).run(1 + seed % 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_orders_find_a_defect(name: str) -> None:
    with pytest.raises(AssertionError):
        _with(DEFECTS[name])


@pytest.mark.slow
def test_orders_come_to_what_is_rare() -> None:
    """Helpers compute, are late, sleep, are woken and end; jobs are refused."""
    seen: set[str] = set()

    class Noting(Native):
        def release(self, lock: int) -> Iterator[None]:
            seen.add("woken")
            return super().release(lock)

        def told(self, late: int) -> None:
            seen.add("done" if not late else "refused" if late >> 63 else "late")

    for seed in range(ORDERS):
        native = Noting(seed, 3)
        native.run(2)
        seen.update("helped" for begun in native.begun.values() if begun != sorted(begun))
    assert seen == {"woken", "done", "refused", "late", "helped"}
