"""Operations on single numbers as LLVM's assembly, with the bits that their kernels give.

An op's expression is printed instruction by instruction: each rounds as NumPy's does, nothing is
contracted or reordered, integers wrap. Functions such as exp are NumPy's own loops, called for one
element. What would fail, and what the processor and C leave undefined, branches to where the
iteration is given back to Python's code.

Source: LLVM's language reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowscope.errors import UnimplementedError
from flowscope.graph.constant import Const
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expression import Expression
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.kernels import inlined_expression
from flowscope.plan.ir.program import Node, Value

#: What LLVM calls the dtypes of numbers that loops compute with.
TYPES = {"float64": "double", "float32": "float", "int64": "i64", "int32": "i32", "bool": "i1"}
#: What a call of NumPy's loop, a remainder and a division of integers cost, in additions.
_CALL, _DIVISION = 20, 10
_FLOATS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INTEGERS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
#: NumPy's functions that are one instruction or intrinsic.
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint"}
_COMPARING = {"equal": "eq", "not_equal": "ne"}

#: Returns the addresses of NumPy's loop of a function and of its data: (name, "d" or "f", inputs).
NumpyLoop = Callable[[str, str, int], tuple[int, int]]


class Number(NamedTuple):
    """An operand: its text, and its type in LLVM; "" for a literal, which takes the other's."""

    text: str
    type: str

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.type in ("double", "float")


def literal(value: Any, kind: str) -> Number:
    """Returns a Python number as an operand of a type."""
    if kind == "i1":
        return Number("true" if value else "false", kind)
    if kind in ("i32", "i64"):
        return Number(str(int(value)), kind)
    number = float(value)
    if kind == "float":  # rounded as NumPy's float32; written as the double of the same value
        number = struct.unpack("f", struct.pack("f", number))[0]
    return Number(f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}", kind)


def type_of(dtype: DType) -> str:
    """Returns LLVM's type of a dtype.

    Raises:
        UnimplementedError: if loops do not compute with it.
    """
    found = TYPES.get(dtype.name)
    if found is None:
        raise UnimplementedError(f"it computes with {dtype.name}")
    return found


class Instructions:
    """Lines of assembly, written one after the other.

    Args:
        numpy_loop: Where NumPy's loops are.

    Attributes:
        lines: The lines.
        label: The block that is being written.
        cost: What the operations take that were written so far, in additions.
    """

    def __init__(self, numpy_loop: NumpyLoop) -> None:
        self._numpy_loop = numpy_loop
        self._count = 0
        self.lines: list[str] = []
        self.label = "entry"
        self.cost = 0

    def emit(self, text: str) -> str:
        """Writes an instruction; returns the name of its result."""
        name = self.new("t")
        self.lines.append(f"  {name} = {text}")
        return name

    def new(self, stem: str) -> str:
        """Returns a name that nothing has yet."""
        self._count += 1
        return f"%{stem}{self._count}"

    def begin(self, label: str) -> None:
        """Begins a block."""
        self.lines.append(f"{label}:")
        self.label = label

    def leave_if(self, test: str) -> None:
        """Gives the iteration back where a test is true."""
        (ok,) = self.labels("ok")
        self.lines.append(f"  br i1 {test}, label %leave, label %{ok}")
        self.begin(ok)

    def labels(self, *stems: str) -> list[str]:
        """Returns names of blocks."""
        self._count += 1
        return [f"{stem}.{self._count}" for stem in stems]

    # -- nodes ----------------------------------------------------------------------------------

    def node(self, node: Node, inputs: Sequence[Number]) -> Number:
        """Writes a node that computes one number.

        Raises:
            UnimplementedError: if there are no instructions that give its kernel's bits.
        """
        op = node.op
        kind = type_of(node.outputs[0].spec.dtype)
        self.cost += 1
        if isinstance(op, Const):
            return constant(node.outputs[0])
        special = _FORMS[op.native] if op.native else None
        expression = inlined_expression(node)
        if isinstance(op, Transfer) and expression is None:
            raise UnimplementedError(f"{node.name} brings a value to another device")
        if special is not None:
            found = special(self, inputs, kind)
        elif expression is not None:
            found = self.typed(self.expression(expression, inputs), kind)
        else:
            raise UnimplementedError(f"{op.type} ({node.name}) has no native form")
        if found.type != kind:
            raise UnimplementedError(f"{op.type} ({node.name}) has no native form for its dtypes")
        return found

    def typed(self, number: Number, kind: str) -> Number:
        """Returns an operand; a literal as one of a type."""
        return literal(float(number.text), kind) if not number.type else number

    def expression(self, found: Expression, inputs: Sequence[Number]) -> Number:
        """Writes an expression."""
        kind, operands, value = found
        if kind == "input":
            given_number: Number = inputs[value]
            return given_number
        if kind == "number":
            return Number(repr(value), "")
        given = [self.expression(one, inputs) for one in operands]
        if kind == "either":
            test, *given = given
            a, b = self.alike(given)
            return self.choose(test, a, b)
        given = self.alike(given)
        if kind == "any":
            total = given[0]
            for one in given[1:]:
                total = Number(self.emit(f"or i1 {total.text}, {one.text}"), "i1")
            return total
        if kind == "ufunc":
            return self.function(value, given)
        if kind == "abs":
            return self.absolute(given[0])
        if kind in _FLOATS:
            return self.compare(kind, *given)
        if kind in ("neg", "invert"):
            return self.unary(kind, given[0])
        if kind in ("add", "sub", "mul", "div", "and", "or", "xor"):
            return self.binary(kind, *given)
        raise UnimplementedError(f"its expression has {kind!r}")

    def alike(self, given: list[Number]) -> list[Number]:
        """Returns operands of one type: literals take the others'."""
        kinds = {one.type for one in given} - {""}
        if len(kinds) != 1:
            raise UnimplementedError("its operands differ in dtype")
        (kind,) = kinds
        return [self.typed(one, kind) for one in given]

    # -- instructions ---------------------------------------------------------------------------

    def unary(self, kind: str, a: Number) -> Number:
        """Writes a negation, or the inversion of bits."""
        if kind == "invert":
            return Number(self.emit(f"xor {a.type} {a.text}, {'true' if a.type == 'i1' else -1}"),
                          a.type)  # fmt: skip
        if a.is_float:
            return Number(self.emit(f"fneg {a.type} {a.text}"), a.type)
        return Number(self.emit(f"sub {a.type} 0, {a.text}"), a.type)

    def binary(self, kind: str, a: Number, b: Number) -> Number:
        """Writes an operation on two numbers of one type."""
        if kind == "div":
            if not a.is_float:
                raise UnimplementedError("its operands are no floating-point numbers")
            return Number(self.emit(f"fdiv {a.type} {a.text}, {b.text}"), a.type)
        is_arithmetic = kind in ("add", "sub", "mul")
        if a.type == "i1" if is_arithmetic else a.is_float:
            raise UnimplementedError(f"it has {kind!r} of {a.type}")
        prefix = "f" if a.is_float else ""
        return Number(self.emit(f"{prefix}{kind} {a.type} {a.text}, {b.text}"), a.type)

    def compare(self, kind: str, a: Number, b: Number) -> Number:
        """Writes a comparison."""
        if a.is_float:
            return Number(self.emit(f"fcmp {_FLOATS[kind]} {a.type} {a.text}, {b.text}"), "i1")
        if a.type == "i1" and kind not in ("eq", "ne"):
            raise UnimplementedError("it orders bools")
        return Number(self.emit(f"icmp {_INTEGERS[kind]} {a.type} {a.text}, {b.text}"), "i1")

    def choose(self, test: Number, a: Number, b: Number) -> Number:
        """Writes a choice."""
        text = f"select i1 {test.text}, {a.type} {a.text}, {b.type} {b.text}"
        return Number(self.emit(text), a.type)

    def absolute(self, a: Number) -> Number:
        """Writes an absolute value; that of the least integer is itself."""
        if a.is_float:
            return self.intrinsic("fabs", a)
        zero = literal(0, a.type)
        return self.choose(self.compare("lt", a, zero), self.unary("neg", a), a)

    def intrinsic(self, name: str, a: Number) -> Number:
        """Writes a call of a function of LLVM's."""
        width = "f64" if a.type == "double" else "f32"
        return Number(self.emit(f"call {a.type} @llvm.{name}.{width}({a.type} {a.text})"), a.type)

    def function(self, name: str, given: list[Number]) -> Number:
        """Writes a function of NumPy's."""
        a = given[0]
        if name == "square":
            return self.binary("mul", a, a)
        if name in _COMPARING:
            return self.compare(_COMPARING[name], *given)
        if name == "abs":
            return self.absolute(a)
        if not a.is_float:
            raise UnimplementedError(f"xp.{name} of integers has no native form")
        if name in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[name], a)
        if name == "reciprocal":
            return self.binary("div", literal(1, a.type), a)
        if name == "isnan":
            return Number(self.emit(f"fcmp uno {a.type} {a.text}, {a.text}"), "i1")
        if name in ("isinf", "isfinite"):
            kind = "oeq" if name == "isinf" else "olt"
            size, most = self.absolute(a), literal(float("inf"), a.type)
            return Number(self.emit(f"fcmp {kind} {a.type} {size.text}, {most.text}"), "i1")
        return self.numpy(name, given)

    def numpy(self, name: str, given: list[Number]) -> Number:
        """Writes a call of NumPy's own loop, for one element."""
        kind = given[0].type
        function, data = self._numpy_loop(name, "d" if kind == "double" else "f", len(given))
        self.cost += _CALL
        for i, one in enumerate(given):
            self.lines.append(f"  store {kind} {one.text}, ptr %place.{i}")
        self.lines.append(f"  store ptr %place.{len(given)}, ptr %places.{len(given)}")
        for i in range(len(given)):
            self.lines.append(f"  store ptr %place.{i}, ptr %places.{i}")
        self.lines.append(
            f"  call void inttoptr (i64 {function} to ptr)(ptr %places, ptr %one, ptr %strides, "
            f"ptr inttoptr (i64 {data} to ptr))"
        )
        return Number(self.emit(f"load {kind}, ptr %place.{len(given)}"), kind)

    # -- kernels that no expression says --------------------------------------------------------

    def divisor(self, b: Number) -> tuple[Number, Number]:
        """Gives the iteration back where an integer divisor is 0.

        Returns:
            Whether it is -1, by which the least integer cannot be divided, and another in its
            place.
        """
        self.cost += _DIVISION
        self.leave_if(self.compare("eq", b, literal(0, b.type)).text)
        opposite = self.compare("eq", b, literal(-1, b.type))
        return opposite, self.choose(opposite, literal(1, b.type), b)

    def floor_divide(self, inputs: Sequence[Number], kind: str) -> Number:
        """Writes FloorDiv."""
        a, b = inputs
        if a.is_float:
            return self.intrinsic("floor", self.binary("div", a, b))
        opposite, safe = self.divisor(b)
        quotient = Number(self.emit(f"sdiv {kind} {a.text}, {safe.text}"), kind)
        rest = Number(self.emit(f"srem {kind} {a.text}, {safe.text}"), kind)
        less = self.binary("sub", quotient, literal(1, kind))
        floored = self.choose(self.is_below(rest, safe), less, quotient)
        return self.choose(opposite, self.unary("neg", a), floored)

    def is_below(self, rest: Number, divisor: Number) -> Number:
        """Whether a remainder is not 0 and has another sign than the divisor."""
        zero = literal(0, rest.type)
        there = self.compare("ne", rest, zero)
        signs = self.compare("lt", rest, zero), self.compare("lt", divisor, zero)
        return self.binary("and", there, self.binary("xor", *signs))

    def floor_remainder(self, inputs: Sequence[Number], kind: str) -> Number:
        """Writes FloorMod: NumPy's loop of floating-point numbers."""
        a, b = inputs
        if a.is_float:
            return self.numpy("remainder", [a, b])
        opposite, safe = self.divisor(b)
        rest = Number(self.emit(f"srem {kind} {a.text}, {safe.text}"), kind)
        moved = self.choose(self.is_below(rest, safe), self.binary("add", rest, safe), rest)
        return self.choose(opposite, literal(0, kind), moved)

    def cast(self, inputs: Sequence[Number], kind: str) -> Number:
        """Writes Cast; what an integer cannot hold is given back."""
        (a,) = inputs
        if a.type == kind:
            return a
        if kind == "i1":
            return self.compare("ne", a, literal(0, a.type))
        if a.is_float and kind in ("i32", "i64"):
            return self._cut_off(a, kind)
        name = _CASTS[a.type, kind]
        return Number(self.emit(f"{name} {a.type} {a.text} to {kind}"), kind)

    def _cut_off(self, a: Number, kind: str) -> Number:
        bound = 2.0 ** (int(kind[1:]) - 1)
        low = self.compare("ge", a, literal(-bound, a.type))
        high = self.compare("lt", a, literal(bound, a.type))
        fits = self.binary("and", low, high)
        self.leave_if(self.unary("invert", fits).text)
        return Number(self.emit(f"fptosi {a.type} {a.text} to {kind}"), kind)

    def zero_where(self, test: Number, a: Number) -> Number:
        """Writes a choice of 0 where a number is 0."""
        is_zero = self.compare("eq", test, literal(0, test.type))
        return self.choose(is_zero, literal(0, a.type), a)

    def shift(self, name: str, inputs: Sequence[Number]) -> Number:
        """Writes a shift, by at most one place less than there are."""
        a, b = inputs
        zero, most = literal(0, b.type), literal(int(b.type[1:]) - 1, b.type)
        b = self.choose(self.compare("lt", b, zero), zero, b)
        b = self.choose(self.compare("gt", b, most), most, b)
        return Number(self.emit(f"{name} {a.type} {a.text}, {b.text}"), a.type)


_CASTS = {
    ("double", "float"): "fptrunc", ("float", "double"): "fpext",
    ("i32", "double"): "sitofp", ("i64", "double"): "sitofp",
    ("i32", "float"): "sitofp", ("i64", "float"): "sitofp",
    ("i1", "double"): "uitofp", ("i1", "float"): "uitofp",
    ("i1", "i32"): "zext", ("i1", "i64"): "zext",
    ("i32", "i64"): "sext", ("i64", "i32"): "trunc",
}  # fmt: skip

_Writes = Callable[[Instructions, Sequence[Number], str], Number]


def _sum(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    total = inputs[0]
    for one in inputs[1:]:
        total = code.binary("add", total, one)
    return total


def _power(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    return code.function("power", [*inputs])


def _divide_no_nan(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    a, b = inputs
    return code.zero_where(b, code.binary("div", a, b))


def _x_over_y(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    a, b = inputs
    return code.zero_where(a, code.binary("div", a, b))


def _x_log_y(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    a, b = inputs
    return code.zero_where(a, code.binary("mul", a, code.numpy("log", [b])))


def _root_grad(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    y, dy = inputs
    half = code.binary("mul", dy, literal(0.5, kind))
    return code.zero_where(dy, code.binary("div", half, y))


def _reciprocal_grad(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    y, dy = inputs
    squared = code.binary("mul", y, y)
    return code.zero_where(dy, code.binary("mul", code.unary("neg", dy), squared))


def _either(code: Instructions, inputs: Sequence[Number], kind: str) -> Number:
    return code.choose(*inputs)


def _extreme(kind: str) -> _Writes:
    """Maximum or Minimum, so that one instruction is between the first operand and the result."""

    def write(code: Instructions, inputs: Sequence[Number], _: str) -> Number:
        a, b = inputs
        found = code.choose(code.compare(kind, b, a), b, a)
        if not a.is_float:
            return found
        unordered = Number(code.emit(f"fcmp uno {b.type} {b.text}, {b.text}"), "i1")
        return code.choose(unordered, b, found)

    return write


#: Forms of ops without an expression, and quicker ones than an expression has: `Op.native`.
_FORMS: dict[str, _Writes] = {
    "sum": _sum,
    "cast": Instructions.cast,
    "div_no_nan": _divide_no_nan,
    "floor_divide": Instructions.floor_divide,
    "floor_remainder": Instructions.floor_remainder,
    "maximum": _extreme("gt"),
    "minimum": _extreme("lt"),
    "shift_left": lambda code, inputs, kind: code.shift("shl", inputs),
    "one": lambda code, inputs, kind: literal(1, kind),
    "power": _power,
    "reciprocal_grad": _reciprocal_grad,
    "shift_right": lambda code, inputs, kind: code.shift("ashr", inputs),
    "select": _either,
    "sqrt_grad": _root_grad,
    "xdivy": _x_over_y,
    "xlogy": _x_log_y,
    "zero": lambda code, inputs, kind: literal(0, kind),
}


def constant(value: Value) -> Number:
    """Returns a constant of the program as an operand."""
    assert value.node is not None
    number = value.node.op.value.array.item()  # type: ignore[attr-defined]
    return literal(number, type_of(value.spec.dtype))


__all__ = ["TYPES", "Instructions", "Number", "NumpyLoop", "constant", "literal", "type_of"]
