"""Update rules as one loop of machine code, with the bits that the passes over arrays give.

A rule such as Adam's is a dozen passes over four arrays; each pass reads and writes memory, and
holds up the step as long as others have the processor. So a rule that is used often is traced once:
it is called with symbols in the place of arrays and of the array module, and what it does becomes a
list of instructions. Of these LLVM makes one loop, in which an element is read once and written
once. Multiplication, addition, division and root round as NumPy's do and are not contracted, and
none of them depends on neighbours, so every bit is the same.

A rule that does something else than that - a power, a choice - has no such loop, and none has one
where llvmlite is not installed.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Array
from flowscope.ops.kernels.denormals import denormals_as_zeros

#: Smaller arrays are left to NumPy: they lie in the cache from pass to pass.
_LARGE = 1 << 12
#: As often a rule is computed by NumPy before it is compiled.
_USUAL = 3
#: Bytes of a vector; LLVM splits it where registers are shorter.
_VECTOR_BYTES = 64
_TYPES = {"f": "float", "d": "double"}
_INSTRUCTIONS = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}

#: Larger arrays are shared by threads, in blocks of so many elements.
_SHARED, _BLOCK = 1 << 19, 1 << 17


@frozen
class _Instruction:
    """One instruction on elements: what it is called, and the names of its operands and result."""

    name: str
    operands: tuple[str, ...]
    result: str


class _Symbol:
    """An array, a number or scratch space, while a rule is traced."""

    def __init__(self, trace: _Trace, name: str) -> None:
        self.trace = trace
        self.name = name

    def __rsub__(self, other: float) -> _Symbol:
        return self.trace.made("subtract", other, self)


class _Trace:
    """Stands for the array module while a rule is traced, and notes what it is asked for.

    Attributes:
        instructions: In their order.
        constants: Numbers that stand in the rule, by the names of symbols.
        written: The symbols that were written, in order.
    """

    def __init__(self) -> None:
        self.instructions: list[_Instruction] = []
        self.constants: dict[str, float] = {}
        self.written: dict[str, None] = {}

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _INSTRUCTIONS:
            raise AttributeError(name)
        return functools.partial(self._noted, name)

    def sqrt(self, x: _Symbol, out: _Symbol) -> None:
        """Notes a square root."""
        self._noted("sqrt", x, out)

    def made(self, name: str, *operands: Any) -> _Symbol:
        """Notes an instruction whose result is a symbol of its own."""
        result = _Symbol(self, f"r{len(self.instructions)}")
        self._noted(name, *operands, result)
        return result

    def _noted(self, name: str, *symbols: Any) -> None:
        *operands, result = [self._name(s) for s in symbols]
        self.written[result] = None
        self.instructions.append(_Instruction(name, tuple(operands), result))

    def _name(self, symbol: Any) -> str:
        if isinstance(symbol, _Symbol):
            return symbol.name
        name = f"c{len(self.constants)}"
        self.constants[name] = float(symbol)
        return name


def update(op: Any, arrays: Sequence[Array], numbers: Sequence[Array]) -> bool:
    """Does what an op's rule does, in one loop; returns whether it was done.

    Args:
        op: The op, with `rule` and `temporaries`.
        arrays: What the rule gets, without scratch space: what it changes, and the gradient.
        numbers: The numbers that it gets.
    """
    first, grad = arrays[0], arrays[-1]
    if type(first) is not np.ndarray or first.size < _LARGE or type(grad) is not np.ndarray:
        return False
    dtype = first.dtype
    if dtype.char not in _TYPES or any(a.dtype != dtype for a in (*arrays, *numbers)):
        return False
    if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays[:-1]):
        return False
    if np.geterr()["invalid"] != "ignore":  # somebody is told of flags, which NumPy's passes raise
        return False
    options = tuple([v for k, v in vars(op).items() if k != "group"])
    key = type(op), options, dtype.char, len(arrays), len(numbers)
    found = _loops.get(key, 0)
    if type(found) is int:
        found = found + 1 if found < _USUAL else _compiled(op, key)
        _loops[key] = found
    if found is None or type(found) is int:
        return False
    grad = np.ascontiguousarray(grad)  # it lives as long as its address is used
    places = [a.ctypes.data for a in (*arrays[:-1], grad)]
    values = np.array(numbers, dtype)
    step = current_step()
    if first.size < _SHARED or step is None or step.pool is None:
        found(places, values, first.size)
        return True

    def block(i: int) -> None:
        start = i * _BLOCK
        some = [p + start * dtype.itemsize for p in places]
        with denormals_as_zeros(np, first):  # a setting of the thread's
            found(some, values, min(_BLOCK, first.size - start))

    step.pool.parallel_for(-(-first.size // _BLOCK), block)
    return True


#: Loops by rules and dtypes; how often a rule was used while it has none, None if it gets none.
_loops: dict[Any, Any] = {}


def _compiled(op: Any, key: tuple[Any, ...]) -> _Code | None:
    *_, char, arrays, numbers = key
    trace = _Trace()
    names = [f"a{i}" for i in range(arrays)]
    scratch = [f"t{i}" for i in range(op.temporaries)]
    given = [f"n{i}" for i in range(numbers)]
    try:
        op.rule(trace, *[_Symbol(trace, name) for name in (*names, *scratch, *given)])
        return _Code(_text(trace, names, given, _TYPES[char]))
    except (AttributeError, TypeError, ImportError, RuntimeError):
        return None  # it does something else, or there is nothing that compiles it


class _Code:
    """A compiled loop.

    Args:
        text: LLVM's assembly.

    Raises:
        ImportError: if llvmlite is not installed.
        RuntimeError: if the assembly does not compile here.
    """

    def __init__(self, text: str) -> None:
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        triple = llvm.get_process_triple()
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        module.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_triple(triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=2
        )
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._call = made(self._engine.get_function_address("update"))

    def __call__(self, places: Sequence[int], values: Array, count: int) -> None:
        """Changes arrays in place.

        Args:
            places: The addresses of their first elements; the last one is the gradient's.
            values: The numbers of the rule.
            count: How many elements.
        """
        addresses = np.array(places, np.uintp)
        self._call(addresses.ctypes.data, values.ctypes.data, count)


def _text(trace: _Trace, arrays: Sequence[str], numbers: Sequence[str], scalar: str) -> str:
    """Returns LLVM's assembly of a traced rule: a loop over vectors, and one over what is left."""
    width = _VECTOR_BYTES // (4 if scalar == "float" else 8)
    suffix = "f32" if scalar == "float" else "f64"
    vector = f"<{width} x {scalar}>"
    head = [
        f"  %{name}.p.p = getelementptr ptr, ptr %places, i64 {i}\n"
        f"  %{name}.p = load ptr, ptr %{name}.p.p"
        for i, name in enumerate(arrays)
    ]
    for i, name in enumerate(numbers):
        head += [
            f"  %{name}.n = getelementptr {scalar}, ptr %values, i64 {i}",
            f"  %{name} = load {scalar}, ptr %{name}.n",
            f"  %{name}.one = insertelement {vector} poison, {scalar} %{name}, i32 0",
            f"  %{name}.v = shufflevector {vector} %{name}.one, {vector} poison, "
            f"<{width} x i32> zeroinitializer",
        ]
    body = functools.partial(_body, trace, arrays, numbers)
    return "\n".join([
        f"declare {vector} @llvm.sqrt.v{width}{suffix}({vector})",
        f"declare {scalar} @llvm.sqrt.{suffix}({scalar})",
        "define void @update(ptr noalias %places, ptr noalias %values, i64 %count) {",
        "entry:",
        *head,
        f"  %whole = and i64 %count, -{width}",
        "  br label %more",
        "more:",
        "  %i = phi i64 [ 0, %entry ], [ %i.1, %vector ]",
        "  %is.more = icmp ult i64 %i, %whole",
        "  br i1 %is.more, label %vector, label %rest",
        "vector:",
        *body(vector, scalar, f"llvm.sqrt.v{width}{suffix}", "%i", "v"),
        f"  %i.1 = add i64 %i, {width}",
        "  br label %more",
        "rest:",
        "  %j = phi i64 [ %whole, %more ], [ %j.1, %single ]",
        "  %is.left = icmp ult i64 %j, %count",
        "  br i1 %is.left, label %single, label %end",
        "single:",
        *body(scalar, scalar, f"llvm.sqrt.{suffix}", "%j", "s"),
        "  %j.1 = add i64 %j, 1",
        "  br label %rest",
        "end:",
        "  ret void",
        "}",
    ])  # fmt: skip


def _body(
    trace: _Trace, arrays: Sequence[str], numbers: Sequence[str], kind: str, scalar: str,
    root: str, index: str, tag: str,
) -> list[str]:  # fmt: skip
    """Returns the instructions of one round of a loop.

    Args:
        trace: The rule.
        arrays, numbers: The names of what it gets.
        kind: The type of operands: a vector, or a scalar.
        scalar: The type of an element.
        root: The function that takes square roots.
        index: The element at which the round begins.
        tag: What the names of this loop end with.
    """
    align = f"align {4 if scalar == 'float' else 8}"
    lines, now = [], {}
    for name in numbers:
        now[name] = f"%{name}.v" if kind != scalar else f"%{name}"
    for name, number in trace.constants.items():
        now[name] = _constant(number, kind, scalar)
    for name in arrays:
        at, now[name] = f"%{name}.{tag}.p", f"%{name}.{tag}"
        lines.append(f"  {at} = getelementptr {scalar}, ptr %{name}.p, i64 {index}")
        lines.append(f"  {now[name]} = load {kind}, ptr {at}, {align}")
    for i, one in enumerate(trace.instructions):
        operands = [now[name] for name in one.operands]
        now[one.result] = made = f"%{tag}{i}"
        if one.name == "sqrt":
            lines.append(f"  {made} = call {kind} @{root}({kind} {operands[0]})")
        else:
            a, b = operands
            lines.append(f"  {made} = {_INSTRUCTIONS[one.name]} {kind} {a}, {b}")
    lines += [
        f"  store {kind} {now[name]}, ptr %{name}.{tag}.p, {align}"
        for name in arrays
        if name in trace.written
    ]
    return lines


def _constant(number: float, kind: str, scalar: str) -> str:
    """Returns a number as LLVM reads it: the bits of the double that it is."""
    rounded = np.float32(number) if scalar == "float" else number
    bits = f"0x{np.float64(rounded).view(np.uint64):016X}"
    if kind == scalar:
        return bits
    width = int(kind[1:].split(" ")[0])
    return "<" + ", ".join([f"{scalar} {bits}"] * width) + ">"


__all__ = ["update"]
