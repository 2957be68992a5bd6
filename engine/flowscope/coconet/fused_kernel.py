"""One operation that computes several element-wise functions, block by block.

A block of the operands stays in the processor's caches while all functions are computed on it. So
what lies between two functions is never written to memory: only operands are read, and results
written. Each element goes through the same functions in the same order as without blocks, so the
bits are the same. Blocks are shared by the step's threads where there are many.

Limits: on another array module than NumPy, and where shapes differ by more than trailing
dimensions, the functions are computed one after the other on whole arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Array, ArrayModule

#: Elements of a block.
BLOCK = 1 << 15
#: So many blocks are handed to a thread at a time.
_SHARE = 8
_FOLDS = {"sum": "add", "mean": "add", "min": "minimum", "max": "maximum", "prod": "multiply"}
_UFUNCS = {"abs": "absolute", "pow": "power"}

#: A function, and its operands: numbers of values (those of inputs come first), or constants.
Instruction = tuple[str, tuple[int | float, ...]]


def written(instructions: Sequence[Instruction]) -> str:
    """Instructions as text: "add 0 1; multiply 2 #0.5". Constants have a "#" before them."""
    return "; ".join([
        " ".join([name, *[str(x) if type(x) is int else f"#{x!r}" for x in operands]])
        for name, operands in instructions
    ])  # fmt: skip


def read(text: str) -> list[Instruction]:
    """The instructions of a text."""
    found: list[Instruction] = []
    for line in text.split("; "):
        name, *operands = line.split()
        found.append((name, tuple([float(x[1:]) if x[0] == "#" else int(x) for x in operands])))
    return found


@frozen
class FusedElementwise(fs.Op, memory_order="C"):
    """Several element-wise functions, computed block by block.

    Attributes:
        program: The functions, see `written`. Value i is input i; the results follow.
        results: The values that are outputs.
        dtypes: The names of the outputs' dtypes.

    Shapes: s or trailing dimensions of it -> s
    Raises: InvalidArgumentError if shapes do not go together.
    """

    program: str
    results: tuple[int, ...]
    dtypes: tuple[str, ...]

    def infer(self, *xs: fs.Spec) -> Any:
        """The specs of the outputs: the shape that all inputs have together."""
        shape: tuple[int, ...] = ()
        for x in xs:
            known = None if x.shape is None else [d for d in x.shape if d is not None]
            if known is None or x.shape is None or len(known) < len(x.shape):
                raise InvalidArgumentError("expected inputs of known shapes")
            try:
                shape = np.broadcast_shapes(shape, tuple(known))
            except ValueError:
                raise InvalidArgumentError(
                    f"expected shapes that go together, got {list(shape)} and {known}"
                ) from None
        found = tuple([fs.Spec(fs.as_dtype(d), shape) for d in self.dtypes])
        return found if len(found) > 1 else found[0]

    def kernel(self, xp: ArrayModule, *xs: Array) -> Any:
        """The outputs' arrays."""
        shape = np.broadcast_shapes(*[x.shape for x in xs])
        if xp is np and shape:
            outs = [np.empty(shape, fs.as_dtype(d).np_dtype) for d in self.dtypes]
            _in_blocks(read(self.program), self.results, xs, outs, shape)
        else:
            values = computed(xp, read(self.program), list(xs))
            outs = [values[i] for i in self.results]
        return tuple(outs) if len(outs) > 1 else outs[0]

    def grad(self, g: Any, y: Any, *xs: fs.Tensor) -> Any:
        """Gradients through the same functions as operations of their own."""
        values = as_operations(read(self.program), xs)
        gs = g if isinstance(g, tuple | list) else (g,)
        pairs = [(values[i], g) for i, g in zip(self.results, gs, strict=True) if g is not None]
        trained = [x for x in xs if x.dtype.is_floating]
        found = fs.gradients([a for a, _ in pairs], trained, grad_ys=[b for _, b in pairs])
        by_name = dict(zip([x.name for x in trained], found, strict=True))
        return tuple([by_name.get(x.name) for x in xs])


def computed(xp: Any, instructions: Sequence[Instruction], values: list[Any]) -> list[Any]:
    """Values, and behind them the results of instructions on whole arrays."""
    for name, operands in instructions:
        values.append(_result(xp, name, operands, values))
    return values


def _result(xp: Any, name: str, operands: tuple[int | float, ...], values: Sequence[Any]) -> Any:
    if name.startswith("cast."):
        return values[operands[0]].astype(fs.as_dtype(name[5:]).np_dtype)  # type: ignore[index]
    if name.startswith("fold."):
        return _folded(xp, name[5:], [values[i] for i in operands])  # type: ignore[index]
    dtype = [values[i] for i in operands if type(i) is int][-1].dtype
    given = [values[i] if type(i) is int else dtype.type(i) for i in operands]
    if name == "ite":
        return xp.where(*given)
    if name == "relu":
        name, given = "maximum", [*given, dtype.type(0)]
    function = getattr(xp, _UFUNCS.get(name, name))
    found = function(*given)
    is_bool = name in ("greater", "less")
    return found if is_bool or found.dtype == dtype else found.astype(dtype)


def _folded(xp: Any, reduction: str, xs: Sequence[Any]) -> Any:
    """Arrays reduced in order; those of 16 bits in float32, rounded once."""
    dtype = xs[0].dtype
    if len(xs) == 1:
        return xs[0]
    wide = [x.astype("float32") for x in xs] if dtype.itemsize == 2 else list(xs)
    fold = getattr(xp, _FOLDS[reduction])
    total = fold(wide[0], wide[1])
    for x in wide[2:]:
        total = fold(total, x)
    if reduction == "mean":
        total = total / len(xs)
    return total.astype(dtype, copy=False)


def _in_blocks(
    instructions: Sequence[Instruction],
    results: Sequence[int],
    xs: Sequence[Any],
    outs: Sequence[Any],
    shape: tuple[int, ...],
) -> None:
    """Computes instructions block by block into `outs`."""
    whole = [x for x in xs if x.shape == shape]
    is_flat = all(x.shape == () or x.shape == shape for x in xs)
    if is_flat and all(x.flags.c_contiguous for x in whole):
        xs = [x.reshape(-1) if x.shape == shape else x for x in xs]
        outs = [x.reshape(-1) for x in outs]
    rows = outs[0].shape[0]
    per_row = max(1, outs[0].size // max(1, rows))
    step = max(1, BLOCK // per_row)
    is_cut = [x.ndim == outs[0].ndim and x.shape[0] == rows and rows > 1 for x in xs]
    dies = _last_uses(instructions, results, len(xs))

    def share(index: int) -> None:
        prepared: dict[int, list[Step]] = {}
        with np.errstate(all="ignore"):
            first = index * step * _SHARE
            for begin in range(first, min(rows, first + step * _SHARE), step):
                at = slice(begin, begin + step)
                values: list[Any] = [x[at] if c else x for x, c in zip(xs, is_cut, strict=True)]
                length = min(step, rows - begin)
                if length not in prepared:
                    computed(np, instructions, values)
                    prepared[length] = _steps(instructions, values, dies)
                else:
                    for one in prepared[length]:
                        values.append(one(values))
                for i, out in zip(results, outs, strict=True):
                    out[at] = values[i]

    _shared(-(-rows // (step * _SHARE)), share)


#: Computes one instruction on the values of a block, into a buffer of its own.
Step = Callable[[list[Any]], Any]


def _steps(
    instructions: Sequence[Instruction], values: Sequence[Any], dies: Sequence[Sequence[int]]
) -> list[Step]:
    """Instructions for blocks of the shapes of these values; buffers are used again.

    Args:
        instructions: The functions.
        values: The inputs and the results of one block.
        dies: Per instruction the values that are not needed behind it.
    """
    first = len(values) - len(instructions)
    free: dict[Any, list[Any]] = {}
    own: dict[int, Any] = {}
    found = []
    for at, ((name, operands), dead) in enumerate(zip(instructions, dies, strict=True)):
        result = values[first + at]
        key = result.shape, result.dtype
        buffer = free[key].pop() if free.get(key) else np.empty(*key)
        own[first + at] = buffer
        found.append(_step(name, operands, values, buffer))
        for i in dead:
            if i in own:
                buffer = own.pop(i)
                free.setdefault((buffer.shape, buffer.dtype), []).append(buffer)
    return found


def _step(name: str, operands: tuple[int | float, ...], values: Sequence[Any], out: Any) -> Step:
    """One instruction, into a buffer."""
    if name.startswith("cast."):
        return functools.partial(_copied, int(operands[0]), out)
    if name.startswith("fold."):
        wide = np.empty(out.shape, np.float32) if out.dtype.itemsize == 2 else out
        return functools.partial(_folded_into, name[5:], operands, out, wide)
    dtype = [values[i] for i in operands if type(i) is int][-1].dtype
    given = tuple([i if type(i) is int else dtype.type(i) for i in operands])
    if name == "ite":
        return functools.partial(_chosen_into, given, out)
    if name == "relu":
        name, given = "maximum", (*given, dtype.type(0))
    function = getattr(np, _UFUNCS.get(name, name))
    if len(given) == 1:
        return lambda values: function(values[given[0]], out=out)
    a, b = given
    if type(a) is not int:
        return lambda values: function(a, values[b], out=out)
    if type(b) is not int:
        return lambda values: function(values[a], b, out=out)
    return lambda values: function(values[a], values[b], out=out)


def _copied(operand: int, out: Any, values: list[Any]) -> Any:
    np.copyto(out, values[operand], casting="unsafe")
    return out


def _chosen_into(given: tuple[Any, ...], out: Any, values: list[Any]) -> Any:
    condition, x, y = [values[i] if type(i) is int else i for i in given]
    np.copyto(out, y)
    np.copyto(out, x, where=condition)
    return out


def _folded_into(
    reduction: str, operands: tuple[Any, ...], out: Any, wide: Any, values: list[Any]
) -> Any:
    """Folds values in order, in float32 where they have 16 bits."""
    fold = getattr(np, _FOLDS[reduction])
    np.copyto(wide, values[operands[0]], casting="unsafe")
    for i in operands[1:]:
        x = values[i] if wide is out else values[i].astype(np.float32)
        fold(wide, x, out=wide)
    if reduction == "mean" and len(operands) > 1:
        np.divide(wide, len(operands), out=wide)
    if wide is not out:
        np.copyto(out, wide, casting="unsafe")
    return out


def _last_uses(
    instructions: Sequence[Instruction], results: Sequence[int], inputs: int
) -> list[list[int]]:
    """Per instruction the values that are not needed behind it."""
    last: dict[int, int] = {}
    for at, (_, operands) in enumerate(instructions):
        last[inputs + at] = at
        last.update((i, at) for i in operands if type(i) is int)
    found: list[list[int]] = [[] for _ in instructions]
    for value, at in last.items():
        if value not in results:
            found[at].append(value)
    return found


def _shared(count: int, share: Callable[[int], None]) -> None:
    """Computes shares, on the step's threads where there are several shares."""
    step = current_step() if count > 1 else None
    if step is None or step.pool is None:
        for i in range(count):
            share(i)
    else:
        step.pool.parallel_for(count, share)


def as_operations(instructions: Sequence[Instruction], xs: Sequence[Any]) -> list[Any]:
    """Tensors, and behind them the results of instructions as operations of the graph."""
    values = list(xs)
    for name, operands in instructions:
        dtype = [values[i] for i in operands if type(i) is int][-1].dtype
        given = [values[i] if type(i) is int else fs.constant(i, dtype) for i in operands]
        values.append(operation_of(name, given))
    return values


def operation_of(name: str, given: Sequence[Any]) -> Any:
    """The operation of an instruction on tensors."""
    if name.startswith("cast."):
        return fs.cast(given[0], fs.as_dtype(name[5:]))
    if name.startswith("fold."):
        return functools.reduce(_fold_operation(name[5:]), given) / (
            float(len(given)) if name == "fold.mean" else 1.0
        )
    functions: dict[str, Any] = {"relu": fs.nn.relu, "ite": _chosen, "power": fs.pow}
    return (functions.get(name) or getattr(fs, name))(*given)


def _fold_operation(reduction: str) -> Any:
    return getattr(fs, _FOLDS[reduction])


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return fs.where(
        condition, fs.broadcast_to(x, condition.shape), fs.broadcast_to(y, condition.shape)
    )


__all__: list[str] = []
