"""Printing values while a step runs: `Print`, which hands its input on, and `print`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from flowscope import nest
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.op import FROM_0, FROM_1, Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.core.declare import op_function
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.ops.strings.formatting import layout, summary

__all__ = ["Print", "print"]

#: Parts of a line: text, and None for the next input.
Parts = tuple[str | None, ...]


def parts_of(data: Any) -> tuple[Parts, list[Tensor]]:
    """The texts to print and the tensors between them; plain text needs no tensor."""
    texts: list[str | None] = []
    tensors: list[Tensor] = []
    for value in data:
        if isinstance(value, str):
            texts.append(value)
            continue
        t = convert_to_tensor(value)
        known = t.spec.constant
        if t.dtype is dtypes.string and known is not None:
            texts.append(summary(known, -1)[1:-1])
        else:
            texts.append(None)
            tensors.append(t)
    return tuple(texts), tensors


def bracketed(parts: Parts, values: Any, limit: int) -> list[str]:
    """Returns the parts as text in brackets, with at most `limit` elements of each value."""
    rest = iter(values)
    return [f"[{p}]" if p is not None else summary(next(rest), limit) for p in parts]


class Printing(Op, abstract=True, is_stateful=True, views=(0,)):
    """Base class of what hands its first input on and prints the others."""

    parts: Parts
    message: str
    summarize: int

    def _print(self, values: Any) -> None:
        text = "".join(bracketed(self.parts, values, self.summarize))
        sys.stderr.write(f"{self.message}{text}\n")
        sys.stderr.flush()


@frozen
class PrintIdentity(Printing, host_inputs=FROM_1):
    """The input as it is; running it prints a line to standard error.

    Attributes: `parts` of the line, a None for each further input; `message` in front; `summarize`
        elements of each value.
    """

    parts: Parts
    message: str
    summarize: int

    def infer(self, x: Spec, *data: Spec) -> Spec:
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, *data: Tensor) -> Any:
        return (g, *[None] * len(data))

    def kernel(self, xp: ArrayModule, x: Array, *data: Array) -> Array:
        self._print(data)
        return x


@frozen
class PrintFirst(
    Printing, reads_state=True, writes_state=True, accepts_empty=True, host_inputs=FROM_1
):
    """The input as it is; the first so many runs of a session print a line to standard error.

    The second input is the handle of a variable that counts.
    """

    parts: Parts
    message: str
    summarize: int
    first_n: int

    def infer(self, x: Spec, counter: Spec, *data: Spec) -> Spec:
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, counter: Tensor, *data: Tensor) -> Any:
        return (g, None, *[None] * len(data))

    def kernel(self, xp: ArrayModule, x: Array, counter: Any, *data: Array) -> Array:
        count = int(counter.read()) if counter.is_initialized else 0
        if count < self.first_n:
            counter.assign(xp.asarray(count + 1, xp.int64)[()])
            self._print(data)
        return x


@frozen
class PrintLine(Op, is_stateful=True, is_differentiable=False, host_inputs=FROM_0):
    """Nothing; running it prints a line.

    Attributes: `parts` of the line, a None for each input; `stream` "stdout", "stderr", a level of
        the log ("log:info") or "file://" and a path, whose file grows; `summarize` elements at each
        end of an axis; `end` behind the line.
    """

    parts: Parts
    stream: str
    summarize: int
    end: str

    def infer(self, *data: Spec) -> Any:
        return ()

    def kernel(self, xp: ArrayModule, *data: Array) -> None:
        rest = iter(data)
        texts = [layout(xp, next(rest), self.summarize) if p is None else p for p in self.parts]
        _write("".join(texts) + self.end, self.stream)


def _write(text: str, stream: str) -> None:
    if stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    elif stream.startswith("log:"):
        import logging

        level = logging.getLevelName(stream.removeprefix("log:").upper())
        logging.getLogger("flowscope").log(level, "%s", text.removesuffix("\n"))
    else:
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.write(text)
        target.flush()


@op_function("input_")
def Print(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns `input_`; running it prints `data` to standard error.

    Args:
        input_: A tensor, handed on as it is.
        data: What to print: a list of tensors and texts.
        message: Text in front.
        first_n: Print only the first so many times in a session; always if negative or None.
        summarize: How many elements of each tensor, 3 by default; all if negative.
    """
    parts, tensors = parts_of(data)
    shared = (parts, message or "", 3 if summarize is None else summarize)
    if first_n is None or first_n < 0:
        return apply(PrintIdentity(*shared), input_, *tensors, name=name or "Print")
    full = input_.graph.unique_name(f"{name or 'Print'}/count", mark_as_used=False)
    handle = VarHandleOp(dtypes.int64, (), input_.graph.extras.get("container", ""), full)
    counter = apply(handle, name=f"{name or 'Print'}/count")
    return apply(PrintFirst(*shared, first_n), input_, counter, *tensors, name=name or "Print")


def print(*inputs: Any, **kwargs: Any) -> Operation:
    """Returns an operation that prints a line when it runs.

    Args:
        *inputs: Texts, tensors, and nested structures of them and of anything else.
        **kwargs: `output_stream`, `sys.stderr` by default, `sys.stdout`, a logging function such as
            `logging.info`, or "file://" and a path; `summarize`, how many elements at each end of
            an axis, 3 by default and all if -1; `sep`, " " by default; `end`, a new line by
            default; `name`.
    """
    stream = _stream(kwargs.pop("output_stream", None))
    summarize, sep, end = (
        kwargs.pop("summarize", 3),
        kwargs.pop("sep", " "),
        kwargs.pop("end", "\n"),
    )
    name = kwargs.pop("name", None)
    if kwargs:
        raise expected("output_stream, summarize, sep, end and name only", ", ".join(kwargs))
    parts, tensors = template(inputs, sep)
    op = PrintLine(parts, stream, 3 if summarize is None else summarize, end)
    if tensors:
        return apply_none(op, *tensors, name=name or "print")
    return apply_none(op, name=name or "print")


def template(inputs: Any, sep: str) -> tuple[Parts, list[Tensor]]:
    """Returns texts and structures as the parts of a line, and the tensors among them."""
    tensors: list[Tensor] = []
    texts: list[str] = []
    for value in inputs:
        if isinstance(value, str):
            texts.append(value)
            continue
        marked = nest.map_structure(lambda v: _Mark() if _is_tensor(v) else v, value)
        tensors += [convert_to_tensor(v) for v in nest.flatten(value) if _is_tensor(v)]
        texts.append(repr(marked))
    parts: list[str | None] = []
    for i, text in enumerate(sep.join(texts).split(_MARK)):
        parts += [text] if i == 0 else [None, text]
    return tuple([p for p in parts if p != ""]), tensors


#: Stands for a tensor in a text: no text has it.
_MARK = "\x00tensor\x00"


class _Mark:
    """Stands for a tensor in a structure."""

    def __repr__(self) -> str:
        return _MARK


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | Convertible | np.ndarray | np.generic)


def _stream(stream: Any) -> str:
    if stream is None or stream is sys.stderr or stream is sys.__stderr__:
        return "stderr"
    if stream is sys.stdout or stream is sys.__stdout__:
        return "stdout"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    level = getattr(stream, "__name__", "")
    if callable(stream) and level in ("debug", "info", "warning", "error", "critical"):
        return f"log:{level}"
    raise expected_dtype(
        "sys.stdout, sys.stderr, a logging function or 'file://...' as output_stream", repr(stream)
    )
