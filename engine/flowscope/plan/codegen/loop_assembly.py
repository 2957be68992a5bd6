"""A loop of single numbers as one function of LLVM's assembly.

    i64 @loop(ptr state, i64 budget, i64 floor)

It goes on with a loop between two iterations, and returns there: the state is as it was when the
last iteration ended that it has run as a whole. So the Python function of the same loop goes on
with it, whatever it was that ended the call:

    0  the condition is false
    1  the budget is used up; every operation takes of it
    2  the iteration that comes next would fail, or is left to Python: its operations have no effect
       but their results, so nothing is lost if it is begun again
    3  a loop inside of that iteration has used up the budget down to `floor`

The state is words of eight bytes: the number of iterations that are done, the number at which a
counted loop ends (0 for others), the variables, and what is read from outside.
"""

from __future__ import annotations

from flowscope.errors import UnimplementedError
from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.flow import NoOp
from flowscope.plan.codegen.native_hooks import captured_values
from flowscope.plan.codegen.scalar_assembly import (
    Instructions,
    Number,
    NumpyLoop,
    constant,
    literal,
    type_of,
)
from flowscope.plan.codegen.unboxed import is_constant
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

#: Words of the state before the variables.
HEAD = 2
#: Larger loops would be compiled for a second.
_MOST_NODES = 500
#: How numbers lie in words, for `struct`.
_WORDS = {"double": "d", "float": "f4x", "i64": "q", "i32": "i4x", "i1": "?7x"}
#: Inputs of NumPy's functions, and their output.
_PLACES = 3


@frozen
class LoopText:
    """A loop as assembly.

    Attributes:
        text: The function, without what names the machine.
        layout: How the state's words lie, for `struct`.
        results: How its first words lie: the count and the variables are read from there.
    """

    text: str
    layout: str
    results: str


def loop_text(node: LoopNode, numpy_loop: NumpyLoop) -> LoopText:
    """Returns a loop as assembly.

    Args:
        node: The loop.
        numpy_loop: Where NumPy's loops are.

    Raises:
        UnimplementedError: if it has something that no assembly is written for.
    """
    if sum(1 for block in node.blocks for _ in block.walk()) > _MOST_NODES:
        raise UnimplementedError(f"it has more than {_MOST_NODES} operations")
    return _LoopAssembly(node, numpy_loop).result()


class _LoopAssembly:
    def __init__(self, node: LoopNode, numpy_loop: NumpyLoop) -> None:
        self._node = node
        self._code = Instructions(numpy_loop)
        self._long: list[str] = []
        self._values: dict[Value, Number] = {}

    def result(self) -> LoopText:
        node, code = self._node, self._code
        captured = captured_values(node)
        kinds = [type_of(v.spec.dtype) for v in (*node.parameters, *captured)]
        starts = [self._load(HEAD + i, kind) for i, kind in enumerate(kinds)]
        self._values.update(zip(captured, starts[node.variables :], strict=True))
        count, limit = self._load(0, "i64"), self._load(1, "i64")
        phis = self._loop(node, count, limit, starts[: node.variables], "%budget", None)
        code.begin("finished")
        code.lines.append("  br label %end")
        self._exits(phis)
        head = "qq"
        words = [_WORDS[kind] for kind in kinds]
        results = head + "".join(words[: node.variables])
        return LoopText("\n".join([*_HEAD, *code.lines, "}"]), head + "".join(words), results)

    def _load(self, index: int, kind: str) -> Number:
        code = self._code
        place = code.emit(f"getelementptr i64, ptr %state, i64 {index}")
        if kind != "i1":
            return Number(code.emit(f"load {kind}, ptr {place}"), kind)
        byte = code.emit(f"load i8, ptr {place}")
        return Number(code.emit(f"icmp ne i8 {byte}, 0"), "i1")

    def _store(self, index: int, value: Number) -> None:
        code, (text, kind) = self._code, value
        place = code.emit(f"getelementptr i64, ptr %state, i64 {index}")
        if kind == "i1":
            text, kind = code.emit(f"zext i1 {text} to i8"), "i8"
        code.lines.append(f"  store {kind} {text}, ptr {place}")

    def _exits(self, phis: list[Number]) -> None:
        """Writes where the function ends, with the state of the outermost loop's head."""
        code = self._code
        code.begin("leave")
        code.lines.append("  br label %end")
        code.begin("long")
        code.lines.append("  br label %end")
        code.begin("spent")
        code.lines.append("  br label %end")
        code.begin("end")
        status = code.emit("phi i64 [ 0, %finished ], [ 1, %spent ], [ 2, %leave ], [ 3, %long ]")
        self._store(0, phis[0])
        for i, phi in enumerate(phis[1:]):
            self._store(HEAD + i, phi)
        code.lines.append(f"  ret i64 {status}")

    def _loop(
        self,
        node: LoopNode,
        count: Number,
        limit: Number | None,
        starts: list[Number],
        budget: str,
        after: str | None,
    ) -> list[Number]:
        """Writes a loop; returns the count and the variables at its head, which is where it ends.

        Args:
            node: The loop.
            count: Iterations that are done.
            limit: The number of iterations at which it ends, where it has one.
            starts: The variables.
            budget: What is left of the budget.
            after: The block that comes behind it; None for the outermost loop.
        """
        if node.op.lists or node.kept:
            raise UnimplementedError(f"{node.name} keeps lists for its gradient")
        code = self._code
        head, body = code.labels("head", "body")
        entry = code.label
        code.lines.append(f"  br label %{head}")
        code.begin(head)
        at = len(code.lines)
        left = code.new("left")
        names = [Number(code.new("v"), one.type) for one in (count, *starts)]
        if after is None:
            self._go_on(f"icmp slt i64 {left}, 0", "spent")
        else:
            self._go_on(f"icmp slt i64 {left}, %floor", "long")
        self.left = left
        before, code.cost = code.cost, 0
        end = after or "finished"
        self._tests(node, names, limit, end)
        code.lines.append(f"  br label %{body}")
        code.begin(body)
        self._values.update(zip(node.parameters, names[1:], strict=True))
        self._block(node.body)
        after_values = [self._value(v) for v in node.next_values]
        more = code.emit(f"add i64 {names[0].text}, 1")
        rest = code.emit(f"sub i64 {self.left}, {code.cost + 1}")
        code.cost = before
        back = code.label
        code.lines.append(f"  br label %{head}")
        joined = [
            f"  {left} = phi i64 [ {budget}, %{entry} ], [ {rest}, %{back} ]",
            *[
                f"  {n.text} = phi {n.type} [ {a.text}, %{entry} ], [ {b.text}, %{back} ]"
                for n, a, b in zip(
                    names, (count, *starts), (Number(more, "i64"), *after_values), strict=True
                )
            ],
        ]
        code.lines[at:at] = joined
        self.left = left
        return names

    def _go_on(self, test: str, otherwise: str) -> None:
        """Leaves for another block where a test is true."""
        code = self._code
        found = code.emit(test)
        (on,) = code.labels("on")
        code.lines.append(f"  br i1 {found}, label %{otherwise}, label %{on}")
        code.begin(on)

    def _tests(self, node: LoopNode, names: list[Number], limit: Number | None, end: str) -> None:
        code = self._code
        tests = []
        if node.count is not None:
            assert limit is not None
            tests.append(code.emit(f"icmp slt i64 {names[0].text}, {limit.text}"))
        if tests:
            self._ends_unless(tests[0], end)
        if node.condition is not None:
            self._values.update(zip(node.condition.feeds, names[1:], strict=True))
            self._block(node.condition)
            self._ends_unless(self._value(node.condition.fetches[0]).text, end)

    def _ends_unless(self, test: str, end: str) -> None:
        code = self._code
        (on,) = code.labels("on")
        code.lines.append(f"  br i1 {test}, label %{on}, label %{end}")
        code.begin(on)

    def _block(self, program: Program) -> None:
        for node in program.nodes:
            self._write(node)

    def _write(self, node: Node) -> None:
        code, values = self._code, self._values
        if isinstance(node, LoopNode):
            self._inner(node)
        elif isinstance(node, CondNode):
            self._branches(node)
        elif isinstance(node.op, Const):
            values[node.outputs[0]] = constant(node.outputs[0])
        elif not isinstance(node.op, NoOp):
            if len(node.outputs) != 1:
                raise UnimplementedError(f"{node.op.type} ({node.name}) has no native form")
            given = [self._value(v) for v in node.inputs]
            values[node.outputs[0]] = code.node(node, given)

    def _value(self, value: Value) -> Number:
        return constant(value) if is_constant(value) else self._values[value]

    def _inner(self, node: LoopNode) -> None:
        code = self._code
        starts = [self._value(v) for v in node.starts]
        limit = None
        if node.count is not None:
            limit = self._value(node.count)
            if limit.type != "i64":
                limit = Number(code.emit(f"sext {limit.type} {limit.text} to i64"), "i64")
        (end,) = code.labels("end")
        spent = code.emit(f"sub i64 {self.left}, {code.cost}")
        code.cost = 0
        names = self._loop(node, literal(0, "i64"), limit, starts, spent, end)
        code.begin(end)
        self._values.update(zip(node.results, names[1:], strict=True))
        self._values[node.trip_count] = names[0]

    def _branches(self, node: CondNode) -> None:
        code = self._code
        test = self._value(node.pred)
        then, other, end = code.labels("then", "other", "end")
        code.lines.append(f"  br i1 {test.text}, label %{then}, label %{other}")
        before, left = code.cost, self.left
        found, ends, spent = [], [], []
        for label, block in zip((then, other), node.blocks, strict=True):
            code.begin(label)
            self.left, code.cost = left, 0
            self._block(block)
            found.append([self._value(v) for v in block.fetches])
            spent.append(code.emit(f"sub i64 {self.left}, {code.cost}"))
            ends.append(code.label)
            code.lines.append(f"  br label %{end}")
        code.begin(end)
        pairs = [*zip(*found, strict=True)]
        for out, (a, b) in zip(node.outputs, pairs, strict=True):
            self._values[out] = self._join(a, b, ends)
        self.left = self._join(Number(spent[0], "i64"), Number(spent[1], "i64"), ends).text
        code.cost = before

    def _join(self, a: Number, b: Number, ends: list[str]) -> Number:
        if a.type != b.type:
            raise UnimplementedError("a branch's results differ in dtype")
        text = f"phi {a.type} [ {a.text}, %{ends[0]} ], [ {b.text}, %{ends[1]} ]"
        return Number(self._code.emit(text), a.type)

    #: What is left of the budget where the code is being written.
    left = "%budget"


def _declared() -> list[str]:
    return [
        f"declare {kind} @llvm.{name}.{width}({kind})"
        for kind, width in (("double", "f64"), ("float", "f32"))
        for name in ("sqrt", "floor", "ceil", "rint", "fabs")
    ]


_HEAD = [
    *_declared(),
    "define i64 @loop(ptr noalias %state, i64 %budget, i64 %floor) {",
    "entry:",
    *[f"  %place.{i} = alloca i64" for i in range(_PLACES)],
    f"  %places = alloca [{_PLACES} x ptr]",
    *[f"  %places.{i} = getelementptr ptr, ptr %places, i64 {i}" for i in range(_PLACES)],
    "  %one = alloca i64",
    "  store i64 1, ptr %one",
    f"  %strides = alloca [{_PLACES} x i64]",
    f"  store [{_PLACES} x i64] [i64 8, i64 8, i64 8], ptr %strides",
]

__all__ = ["HEAD", "LoopText", "loop_text"]
