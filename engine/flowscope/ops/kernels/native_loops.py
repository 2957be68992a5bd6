"""Loops over bytes: compiled where llvmlite is installed, run as Python where it is not.

A loop is a function in a small part of Python, so one text serves both. All its values are integers
of 64 bits; parameters annotated as `Bytes`, `Words32` or `Words64` are arrays of unsigned integers.
It has assignments, `if`, `while`, `break`, `continue`, `return`, arithmetic, bits, comparisons
(signed), `and`, `or`, `not`, elements of arrays, and calls of other loops that are compiled with
it. A name that it does not assign is an integer of its module. Shifts to the right fill up with
zeros, and Python has no bound: what grows beyond 64 bits has to be masked.

LLVM takes some tenths of a second for a few loops. So they run as Python first while a thread
compiles them, and a call with much to do waits for that: see `LoopTiers`.

Compiled loops run without the interpreter's lock. They check no index: the loop has to.

Source: LLVM's language reference.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from flowscope.graph.current_step import background

__all__ = ["Bytes", "LoopTiers", "NativeLoops", "Words32", "Words64"]

#: Arrays of unsigned integers of 8, 32 and 64 bits: `bytes`, or NumPy's arrays in C order.
Bytes: TypeAlias = Any
Words32: TypeAlias = Any
Words64: TypeAlias = Any
_WIDTHS = {"Bytes": "i8", "Words32": "i32", "Words64": "i64"}
_BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARED: dict[type, str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip


class NativeLoops(NamedTuple):
    """Functions that are compiled, or run as Python.

    Attributes:
        functions: The functions. They take integers, `bytes`, and what `given` returns.
        given: Returns an array as they take it. The array has to live as long as that is used.
    """

    functions: tuple[Callable[..., int], ...]
    given: Callable[[Any], Any]


#: Iterations that Python does rather than wait for machine code: a tenth of a second, of which LLVM
#: takes several.
_FEW = 100_000


class LoopTiers:
    """Loops that run as Python until a thread has compiled them.

    Args:
        functions: The loops.
        slow: What stands, where nothing is compiled, for those of them that NumPy does quicker than
            Python; by name.
    """

    def __init__(
        self, functions: Sequence[Callable[..., int]], slow: Mapping[str, Callable[..., int]]
    ) -> None:
        self._functions = functions
        # The elements of a view are Python's integers, which do not overflow.
        self._now = NativeLoops(tuple([_as_python(f, slow) for f in functions]), memoryview)
        self._is_final = False
        self._wait: Callable[[], None] | None = None
        self._iterations = 0

    def get(self, iterations: int) -> NativeLoops:
        """The functions for a call, compiled if they are or if that is worth the wait.

        Args:
            iterations: About how many of its loops Python would run.
        """
        if self._is_final:
            return self._now
        if self._wait is None and background:
            self._wait = background[0](self._compile)
        self._iterations += iterations
        if iterations > _FEW or (self._wait is None and self._iterations > _FEW):
            if self._wait is not None:
                self._wait()
            if not self._is_final:
                self._compile()
        return self._now

    def _compile(self) -> None:
        try:
            self._now = NativeLoops(_compiled(self._functions), _address)
        except (ImportError, RuntimeError):
            pass  # Python goes on
        finally:
            self._is_final = True


def _address(array: Any) -> int:
    # In a third of the time of `array.ctypes.data`.
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _as_python(function: Any, slow: Mapping[str, Callable[..., int]]) -> Callable[..., int]:
    if function.__name__ in slow:
        return slow[function.__name__]
    namespace = {**function.__globals__, **slow}
    return types.FunctionType(function.__code__, namespace, function.__name__)


def _compiled(functions: Sequence[Callable[..., int]]) -> tuple[Callable[..., int], ...]:
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    texts = [_Writer(f).text for f in functions]
    module = llvm.parse_assembly("\n".join([f'target triple = "{triple}"', *texts]))
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=3)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return tuple([_callable(engine, f) for f in functions])


def _callable(engine: Any, function: Any) -> Callable[..., int]:
    kinds = inspect.get_annotations(function)
    arguments = inspect.signature(function).parameters
    taken = [ctypes.c_void_p if kinds[a] in _WIDTHS else ctypes.c_int64 for a in arguments]
    call: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *taken)(
        engine.get_function_address(function.__name__)
    )
    call.engine = engine  # it owns the code
    return call  # type: ignore[no-any-return]


class _Writer:
    """Writes one function as LLVM's assembly.

    Attributes:
        text: The assembly.
    """

    def __init__(self, function: Any) -> None:
        source = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(source, ast.FunctionDef)
        self._globals = function.__globals__
        self._count = 0
        self._loops: list[tuple[str, str]] = []
        self._lines: list[str] = []
        kinds = {a.arg: ast.unparse(a.annotation or ast.Constant(None)) for a in source.args.args}
        self._widths = {a: _WIDTHS[kind] for a, kind in kinds.items() if kind in _WIDTHS}
        stored = {n.id for n in ast.walk(source) if _is_stored(n)}  # type: ignore[attr-defined]
        numbers = [a for a in kinds if a not in self._widths]
        self._places = dict.fromkeys([*numbers, *sorted(stored)])
        given = ", ".join(f"{'ptr' if a in self._widths else 'i64'} %{a}" for a in kinds)
        self._lines += [f"  %at.{name} = alloca i64" for name in self._places]
        self._lines += [f"  store i64 %{name}, ptr %at.{name}" for name in numbers]
        self._body(source.body)
        body = "\n".join(self._lines)
        self.text = f"define i64 @{source.name}({given}) {{\nentry:\n{body}\n  ret i64 0\n}}\n"

    # -- statements -----------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for one in statements:
            match one:
                case ast.Expr(value=ast.Constant()):
                    pass  # a docstring
                case ast.Expr(value=ast.Call() as value):
                    self._value(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._lines.append(f"  store i64 {self._value(value)}, ptr %at.{name}")
                case ast.Assign(targets=[ast.Subscript() as target], value=value):
                    self._store(target, self._value(value))
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    found = self._binary(op, self._load(name), self._value(value))
                    self._lines.append(f"  store i64 {found}, ptr %at.{name}")
                case ast.If(test=test, body=body, orelse=other):
                    yes, no, end = self._labels("yes", "no", "end")
                    self._branch(test, yes, no)
                    self._block(yes, body, end)
                    self._block(no, other, end)
                    self._lines.append(f"{end}:")
                case ast.While(test=test, body=body, orelse=[]):
                    again, inside, end = self._labels("again", "inside", "end")
                    self._loops.append((again, end))
                    self._lines += [f"  br label %{again}", f"{again}:"]
                    self._branch(test, inside, end)
                    self._block(inside, body, again)
                    self._lines.append(f"{end}:")
                    self._loops.pop()
                case ast.Return(value=ast.expr() as value):
                    self._leave(f"ret i64 {self._value(value)}")
                case ast.Break():
                    self._leave(f"br label %{self._loops[-1][1]}")
                case ast.Continue():
                    self._leave(f"br label %{self._loops[-1][0]}")
                case _:
                    raise RuntimeError(f"a loop has no {ast.unparse(one)!r}")

    def _block(self, label: str, statements: Sequence[ast.stmt], end: str) -> None:
        self._lines.append(f"{label}:")
        self._body(statements)
        self._lines.append(f"  br label %{end}")

    def _leave(self, instruction: str) -> None:
        (unreached,) = self._labels("unreached")
        self._lines += [f"  {instruction}", f"{unreached}:"]

    # -- conditions and values ------------------------------------------------------------------

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        match test:
            case ast.BoolOp(op=op, values=[*firsts, last]):
                for one in firsts:
                    (more,) = self._labels("more")
                    is_and = isinstance(op, ast.And)
                    self._branch(one, *((more, no) if is_and else (yes, more)))
                    self._lines.append(f"{more}:")
                self._branch(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, no, yes)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self._value(left), self._value(right)
                found = self._emit(f"icmp {_COMPARED[type(op)]} i64 {a}, {b}")
                self._lines.append(f"  br i1 {found}, label %{yes}, label %{no}")
            case _:
                found = self._emit(f"icmp ne i64 {self._value(test)}, 0")
                self._lines.append(f"  br i1 {found}, label %{yes}, label %{no}")

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int() as value):
                return _literal(value)
            case ast.Name(id=name) if name in self._places:
                return self._load(name)
            case ast.Name(id=name) if isinstance(self._globals.get(name), int):
                return _literal(self._globals[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._emit(f"sub i64 0, {self._value(operand)}")
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.Subscript():
                width, place = self._element(node)
                found = self._emit(f"load {width}, ptr {place}")
                return found if width == "i64" else self._emit(f"zext {width} {found} to i64")
            case ast.Call(func=ast.Name(id=name), args=args):
                given = ", ".join(self._argument(a) for a in args)
                return self._emit(f"call i64 @{name}({given})")
        raise RuntimeError(f"a loop has no {ast.unparse(node)!r}")

    def _argument(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id in self._widths:
            return f"ptr %{node.id}"
        return f"i64 {self._value(node)}"

    def _binary(self, op: ast.operator, a: str, b: str) -> str:
        return self._emit(f"{_BINARY[type(op)]} i64 {a}, {b}")

    def _element(self, node: ast.Subscript) -> tuple[str, str]:
        assert isinstance(node.value, ast.Name)
        name = node.value.id
        width, index = self._widths[name], self._value(node.slice)
        return width, self._emit(f"getelementptr {width}, ptr %{name}, i64 {index}")

    def _store(self, target: ast.Subscript, value: str) -> None:
        width, place = self._element(target)
        if width != "i64":
            value = self._emit(f"trunc i64 {value} to {width}")
        self._lines.append(f"  store {width} {value}, ptr {place}")

    def _load(self, name: str) -> str:
        return self._emit(f"load i64, ptr %at.{name}")

    def _emit(self, instruction: str) -> str:
        self._count += 1
        self._lines.append(f"  %t{self._count} = {instruction}")
        return f"%t{self._count}"

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}.{self._count}" for name in names]


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _literal(value: int) -> str:
    return str(value - (1 << 64) if value >> 63 else value)
