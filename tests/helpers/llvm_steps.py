"""Runs functions of LLVM's assembly one instruction at a time, so that threads can be mixed.

It knows the instructions that `runtime.threads.native_code` uses. Each thread is a generator that
stops before every access to memory and every call outside; whoever drives it decides who goes on.
Memory is words by address, and accesses come one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_MASK = (1 << 64) - 1
#: What runs in the place of a function that is called outside.
Outside = Callable[..., Iterator[None]]


def parsed(text: str) -> dict[str, tuple[list[str], dict[str, list[str]]]]:
    """Returns functions by name: their parameters, and their lines by label."""
    found = {}
    for match in re.finditer(r"define [^@]*@(\w+)\((.*?)\)[^{]*\{\n(.*?)\n\}", text, re.S):
        name, parameters, body = match.groups()
        blocks: dict[str, list[str]] = {}
        label = "entry"
        for line in re.sub(r",\n\s*", ", ", body).splitlines():
            if line.endswith(":") and not line.startswith(" "):
                label = line[:-1]
            elif line.strip():
                blocks.setdefault(label, []).append(line.strip())
        found[name] = [p.split()[-1] for p in parameters.split(",")], blocks
    return found


class Machine:
    """The functions, the memory that threads share, and what is called outside.

    Args:
        text: The assembly.
        outside: What runs in the place of functions, by their names or their addresses.
    """

    def __init__(self, text: str, outside: dict[Any, Outside]) -> None:
        self._functions = parsed(text)
        self._outside = outside
        self.memory: dict[int, int] = {}

    def run(self, name: str, arguments: Sequence[int]) -> Iterator[None]:
        """Runs a function; stops before each access to memory. Its value is what it returns."""
        parameters, blocks = self._functions[name]
        values = dict(zip(parameters, arguments, strict=True))
        before, label = "", next(iter(blocks))
        while True:
            chosen = {}
            for line in blocks[label]:
                if " = phi " in line:
                    pairs = re.findall(r"\[ (\S+), %(\S+) \]", line)
                    ways = {way: value for value, way in pairs}
                    chosen[line.split(" = ")[0]] = _value(ways[before], values)
            values.update(chosen)
            for line in blocks[label]:
                if " = phi " in line or " asm " in line:
                    continue
                if line.startswith("ret"):
                    return None if line == "ret void" else _value(line.split()[-1], values)
                if line.startswith("br "):
                    labels = re.findall(r"label %(\S+?)(?:,|$)", line)
                    is_second = len(labels) > 1 and not values[line.split()[2].rstrip(",")]
                    before, label = label, labels[is_second]
                    break
                yield from self._instruction(line, values)

    def _instruction(self, line: str, values: dict[str, Any]) -> Iterator[None]:
        target, _, code = line.rpartition(" = ") if " = " in line else ("", "", line)
        words = code.replace(",", " ").split()
        operation = words[0]
        if operation == "load":
            yield
            result: Any = self.memory.get(_value(words[words.index("ptr", 2) + 1], values), 0)
        elif operation == "store":
            yield
            at = words.index("ptr", 3 if words[1] != "atomic" else 4)
            kind = 2 if words[1] != "atomic" else 3
            self.memory[_value(words[at + 1], values)] = _value(words[kind], values)
            return
        elif operation == "cmpxchg":
            yield
            place, old, new = (_value(words[i], values) for i in (2, 4, 6))
            is_equal = self.memory.get(place, 0) == old
            if is_equal:
                self.memory[place] = new
            result = is_equal
        elif operation == "call":
            name, inner = re.search(r"([@%][\w.]+)\((.*)\)", code).groups()  # type: ignore[union-attr]
            given = [_value(a.split()[-1], values) for a in inner.split(",") if a.strip()]
            key = name[1:] if name[0] == "@" else values[name]
            if key in self._outside:
                result = yield from self._outside[key](*given)
            else:
                result = yield from self.run(key, given)
        elif operation == "getelementptr":
            size = {"i64": 8, "i8": 1}[words[1]]
            result = _value(words[3], values) + size * _value(words[5], values)
        elif operation == "icmp":
            a, b = _value(words[3], values), _value(words[4], values)
            if words[1][0] == "s":
                a, b = _signed(a), _signed(b)
            tests = {"eq": a == b, "ne": a != b, "lt": a < b, "gt": a > b, "ge": a >= b}
            result = tests[words[1][-2:]]
        elif operation == "extractvalue":
            result = values[words[-2]]
        elif operation == "select":
            result = _value(words[4] if values[words[2]] else words[6], values)
        elif operation in ("inttoptr", "zext", "trunc"):
            result = _value(words[2], values)
        else:
            a, b = _value(words[2], values), _value(words[3], values)
            results = {
                "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
                "and": lambda: a & b, "or": lambda: a | b, "shl": lambda: a << b,
                "lshr": lambda: a >> b,
            }  # fmt: skip
            result = results[operation]() & _MASK
        if target:
            values[target.strip()] = result


def _value(text: Any, values: dict[str, Any]) -> int:
    found = values[text] if text.startswith("%") else int(text)
    return int(found) & _MASK


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
