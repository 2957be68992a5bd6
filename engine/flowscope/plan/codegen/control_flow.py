"""Branches and loops as Python's `if` and `while`, in the function of their region.

A block's values live in local variables of the same function, and are freed at their last use in
it. What a block captures stays where it is. A loop's variables keep one place: the result of an
iteration is written where the parameter was as soon as that is dead, else moved there at the end. A
safepoint stands at the end of each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flowscope.graph.constant import Const
from flowscope.plan.analysis.locations import Part
from flowscope.plan.codegen.buffer_reuse import owned_variables, reuse_in_block
from flowscope.plan.codegen.safepoints import LoopNames
from flowscope.plan.codegen.unboxed import is_number, is_unboxable
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer
    from flowscope.plan.codegen.native_hooks import NativeHook


@contextmanager
def _inside(writer: Writer, scope: BlockScope) -> Iterator[None]:
    """Writes the lines of a block, one step deeper."""
    around = writer.loops
    if scope.loop is not None:
        writer.loops = (*around, (scope.loop.node, scope.loop.counter))
    writer.scopes.append(scope)
    writer.depth += 1
    yield
    writer.depth -= 1
    writer.scopes.pop()
    writer.loops = around


def is_safe_inside(writer: Writer, scope: BlockScope) -> bool:
    """Whether a step may be held in the blocks of the node that is being written."""
    return not scope.is_closed(scope.index)


def _scope(
    writer: Writer,
    outer: BlockScope,
    program: Program,
    own: tuple[Value, ...],
    part: Part,
    loop: LoopNames | None = None,
) -> BlockScope:
    from flowscope.plan.codegen.function import BlockScope

    is_safe = is_safe_inside(writer, outer)
    scope = BlockScope(program, own, is_safe, outer.is_inner or part != "branch", part, loop)
    if writer.reuses:
        scope.reuse = reuse_in_block(program)
    return scope


def _discard(writer: Writer, scope: BlockScope) -> list[str]:
    """Frees the places of what a block made; returns those that hold memory."""
    from flowscope.plan.codegen.function import is_small

    gone = [(v, writer.place.take(v)) for v in scope.own if v in writer.place]
    names = dict.fromkeys(n for _, n in gone if n[0] == "s")
    writer.release_names(names)
    large = {n for v, n in gone if n in names and not (scope.is_inner and is_small(v))}
    return [n for n in names if n in large]


def _credits(writer: Writer, node: LoopNode, is_safe: bool) -> None:
    if writer.mailboxes:
        from flowscope.plan.codegen.crossings import write_credits  # most loops send nothing

        write_credits(writer, node, is_safe)


def write_cond(writer: Writer, scope: BlockScope, node: CondNode) -> None:
    """Writes a Cond node."""
    used = [i for i, v in enumerate(node.outputs) if v in scope.last_use]
    targets = {i: writer.slot(scope.wishes.get(node.outputs[i])) for i in used}
    test = writer.place[node.pred]
    for head, block in zip((f"if {test}:", "else:"), node.blocks, strict=True):
        writer.emit(head, node, (test,))
        inner = _scope(writer, scope, block, (), "branch")
        with _inside(writer, inner):
            before = len(writer.text)
            writer.probe.branch(writer, block is node.then)
            writer.nodes(inner)
            left = [targets[i] for i in used]
            right = [writer.boxed(block.fetches[i]) for i in used]
            cleared = [n for n in _discard(writer, inner) if n not in left]
            _assign(writer, [*left, *cleared], [*right, *["None"] * len(cleared)], node)
            if len(writer.text) == before:
                writer.emit("pass")
    released = writer.release(scope, node)
    tail = writer.clear(scope, released)
    if tail:
        writer.emit(tail[2:])
    writer.place.assign([node.outputs[i] for i in targets], targets.values())


def _assign(writer: Writer, left: list[str], right: list[str], node: Node) -> None:
    """Writes an assignment of several values at once, without those that stay where they are."""
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    if pairs:
        a, b = (", ".join(p) for p in zip(*pairs, strict=True))
        writer.emit(f"{a} = {b}", node)


class _LoopWriter:
    """Writes one Loop node."""

    def __init__(self, writer: Writer, scope: BlockScope, node: LoopNode) -> None:
        self.writer, self.scope, self.node = writer, scope, node
        self.variables = node.variables
        self.body, self.cond = node.body, node.condition
        #: Parameters whose buffers are the loop's own.
        self.owned = owned_variables(node) if writer.reuses else []
        self.trip = node.trip_count

    def write(self) -> None:
        writer, node = self.writer, self.node
        self.places = self._start()
        converted = self._convert()
        pushes = [self.writer.slot() for _ in node.kept]
        entry = writer.entries.get(node)
        if entry:
            _assign(writer, pushes, [writer.place[v] for v in entry.pushes], node)
        elif pushes:
            writer.emit(f"{' = '.join(pushes)} = None", node)
        self.pushes = pushes
        self.counter = self._counter()
        self.hook = self._hook()
        writer.work = 0.0
        self._loop()
        if self.hook is not None:
            writer.release_names([self.hook.at])
        for v, name in converted.items():
            del writer.converted[v]
            writer.release_names([name])
        self._finish(pushes)

    def _start(self) -> list[str]:
        """Puts the variables and lists into places of their own; returns these."""
        writer, node = self.writer, self.node
        explicit = (*node.starts, *node.taken)
        others = [*([] if node.count is None else [node.count]), *node.behind]
        left, right, places, moved = [], [], [], []
        for i, start in enumerate(explicit):
            is_owned = i < self.variables and self.body.feeds[i] in self.owned
            is_only = not is_owned and explicit.count(start) == 1 and start not in others
            name = writer.place[start]
            is_same_kind = start in writer.unboxed.values or i >= self.variables or (
                self.body.feeds[i] not in writer.unboxed.values
            )  # fmt: skip
            is_own = name[0] == "s" and not writer.sharers.get(name)
            if is_only and is_same_kind and self.scope.dies(start) and is_own:
                places.append(name)
                moved.append(start)
                continue
            target = writer.slot()
            places.append(target)
            left.append(target)
            raw = i < self.variables and self.body.feeds[i] in writer.unboxed.values
            given = self._unboxed(start) if raw else writer.boxed(start)
            right.append(f"own({given})" if is_owned else given)
        for v in moved:
            del writer.place[v]
        _assign(writer, left, right, node)
        self.taken = tuple(places[self.variables :])
        return places

    def _unboxed(self, value: Value) -> str:
        from flowscope.plan.codegen.unboxed import is_constant

        writer = self.writer
        if value in writer.unboxed.values or value in writer.converted or is_constant(value):
            return writer.as_unboxed(value)
        return f"{number_type(value)}({writer.place[value]})"

    def _convert(self) -> dict[Value, str]:
        """Makes Python numbers of what unboxed nodes of the loop read from outside."""
        from flowscope.plan.codegen.unboxed import is_constant

        writer = self.writer
        made: dict[Value, str] = {}
        own = {v for b in self.node.blocks for n in b.walk() for v in n.outputs}
        own |= _feeds(self.node)
        for node in (n for b in self.node.blocks for n in b.walk()):
            if not (is_unboxable(node) and node.outputs[0] in writer.unboxed.values):
                continue
            for v in node.inputs:
                known = v in writer.unboxed.values or v in writer.converted or is_constant(v)
                if not known and v not in own:
                    made[v] = writer.converted[v] = writer.slot()
                    writer.emit(f"{made[v]} = {number_type(v)}({writer.place[v]})", self.node)
        return made

    def _counter(self) -> str:
        """Writes the start of the counter; returns its name."""
        writer = self.writer
        self.limit: tuple[str, ...] = ()
        entry = writer.entries.get(self.node)
        counting = self._counting_variable()
        self.counts_itself = counting is not None
        name = counting or writer.slot()
        if not self.counts_itself:
            writer.emit(f"{name} = {writer.place[entry.count] if entry else 0}", self.node)
        if self.node.count is not None:
            count = writer.place[self.node.count]
            limit = writer.slot()
            self.limit = (limit,)
            writer.emit(f"{limit} = int({count})", self.node, (count,))
        return name

    def _counting_variable(self) -> str | None:
        """Returns the place of a variable that is the number of iterations, if there is one.

        In the middle of an iteration it may be the next one already, so only a body will do in
        which nothing fails and nobody asks.
        """
        writer, body = self.writer, self.body
        raw = writer.unboxed
        is_plain = not writer.probe.adds_to(body) and all(
            isinstance(n.op, Const) or (is_unboxable(n) and n.outputs[0] in raw.values)
            for n in body.nodes
        )
        if not is_plain or self.trip in self.scope.last_use or self.node in writer.entries:
            return None
        for start, feed, after, name in zip(
            self.node.starts, body.feeds, body.fetches, self.places, strict=False
        ):
            if feed in raw.values and is_number(start, 0) and after.node in raw.bounded:
                if after.node.inputs[0] is feed:
                    return name
        return None

    def _hook(self) -> NativeHook | None:
        """Writes the line with which a loop can be handed to machine code; None where it cannot."""
        writer, node = self.writer, self.node
        if writer.native_compiler is None or any(writer.probe.adds_to(b) for b in node.blocks):
            return None
        from flowscope.plan.codegen.native_hooks import NativeHook, why_python

        if why_python(node, writer.modules.of) or (compiler := writer.native_compiler()) is None:
            return None
        hook = NativeHook(writer, node, compiler)
        hook.begin(writer, self.counter, node in writer.entries)
        return hook

    def _loop(self) -> None:
        writer, node = self.writer, self.node
        tests = [f"{self.counter} < {self.limit[0]}"] if self.limit else []
        writer.iterations = [*writer.iterations, self.counter]
        inline = self._inline_test()
        if inline is not None:
            tests.append(inline)
        text = " and ".join(tests) or "True"
        names = tuple(writer.place[v] for v in self._tested()) if inline is not None else ()
        writer.emit(f"while {text}:", self._tested_node() if inline else node, names)
        if self.cond is not None and inline is None:
            self._test(self.cond)
        self._iteration()
        writer.iterations = writer.iterations[:-1]

    def _names(self) -> LoopNames:
        """Returns the local variables of its state, for safepoints inside."""
        entry = self.writer.entries.get(self.node)
        return LoopNames(
            entry.loop if entry else self.node,
            self.counter,
            self.limit[0] if self.limit else None,
            tuple(self.places[: self.variables]),
            self.taken,
            tuple(self.pushes),
        )

    def _tested_node(self) -> Node | None:
        if self.cond is None:
            return None
        return next((n for n in self.cond.nodes if not isinstance(n.op, Const)), None)

    def _tested(self) -> tuple[Value, ...]:
        made = self._tested_node()
        return made.inputs if made is not None else ()

    def _inline_test(self) -> str | None:
        """The condition as one expression, if it is one; its parameters are placed then."""
        from flowscope.plan.ir.kernels import inlined_expression

        writer, cond = self.writer, self.cond
        if cond is None or writer.probe.adds_to(cond):
            return None
        made = [n for n in cond.nodes if not isinstance(n.op, Const)]
        if len(made) != 1 or cond.fetches[0].node is not made[0] or made[0].blocks:
            return None
        node = made[0]
        expression = inlined_expression(node)
        is_raw = cond.fetches[0] in writer.unboxed.values
        if not is_raw and (
            expression is None or node.op.is_random or writer.modules.must_switch(node)
        ):
            return None
        writer.place.assign(cond.feeds, self.places)
        inner = _scope(
            writer,
            self.scope,
            Program(tuple(n for n in cond.nodes if n is not node), (), ()),
            (),
            "test",
        )
        writer.nodes(inner)  # constants: they write no lines
        if is_raw:
            return writer.unboxed_expression(node)
        return writer.inlined(node, [writer.boxed(v) for v in node.inputs])

    def _test(self, cond: Program) -> None:
        writer = self.writer
        writer.place.assign(cond.feeds, self.places)
        inner = _scope(writer, self.scope, cond, (), "test", self._names())
        with _inside(writer, inner):
            writer.probe.test(writer, self.node)
            writer.nodes(inner)
            name = writer.place[cond.fetches[0]]
            writer.emit(f"if not {name}: break", cond.fetches[0].node or self.node, (name,))
            large = _discard(writer, inner)
            _assign(writer, large, ["None"] * len(large), self.node)
        for v in cond.feeds:
            writer.place.drop(v)

    def _iteration(self) -> None:
        writer, node, body = self.writer, self.node, self.body
        if self.cond is not None:
            for v in self.cond.feeds:
                writer.place.drop(v)
        own = body.feeds[: self.variables]
        inner = _scope(writer, self.scope, body, own, "body", self._names())
        inner.own.update(dict.fromkeys(body.feeds))
        if self.owned:
            inner.reuse = reuse_in_block(body, self.owned)
        n = self.variables
        places = self.places[:n]
        with _inside(writer, inner):
            writer.place.assign(body.feeds, places)
            writer.probe.iteration(writer)
            for feed, rest in zip(body.feeds[n:], self.taken, strict=True):
                target = writer.place[feed] = writer.slot()
                writer.emit(f"{target}, {rest} = {rest}", node)
            for feed in body.feeds:
                if feed not in inner.last_use:
                    writer.release_names([writer.place.take(feed)])
            inner.wishes = _wishes(body, places)
            writer.nodes(inner)
            self._next(inner, places)
            if not self.counts_itself:
                writer.emit(f"{self.counter} += 1", node)
            if self.hook is not None:
                self.hook.back_edge(writer, self.counter, self.limit, places)
            if is_safe_inside(writer, self.scope):
                self._back_edge()
            else:
                _credits(writer, node, is_safe=False)

    def _next(self, inner: BlockScope, places: list[str]) -> None:
        """Writes the end of an iteration: what is kept, and the variables' next values."""
        writer, body, n = self.writer, self.body, self.variables
        for name, value in zip(self.pushes, body.fetches[n:], strict=True):
            writer.emit(f"{name} = ({writer.boxed(value)}, {name})", self.node)
        right = [
            self._unboxed(v) if f in writer.unboxed.values else writer.boxed(v)
            for v, f in zip(body.fetches[:n], body.feeds, strict=False)
        ]
        large = [x for x in _discard(writer, inner) if x not in places]
        _assign(writer, [*places, *large], [*right, *["None"] * len(large)], self.node)
        for name in places:
            writer.free.pop(name, None)

    def _back_edge(self) -> None:
        """Writes the safepoint between two iterations, with the variables as they are now."""
        writer = self.writer
        writer.place.assign(self.body.feeds, self.places[: self.variables])
        _credits(writer, self.node, is_safe=True)
        writer.safepoint(is_back=True)
        for feed in self.body.feeds[: self.variables]:
            del writer.place[feed]

    def _finish(self, pushes: list[str]) -> None:
        """Puts the outputs into their places, and frees what nothing needs."""
        writer, scope, node = self.writer, self.scope, self.node
        n = self.variables
        left, right = [], []
        for out, feed, name in zip(node.outputs[:n], self.body.feeds, self.places, strict=False):
            writer.place[out] = name
            if (
                feed in writer.unboxed.values
                and out not in writer.unboxed.values
                and out in scope.last_use
            ):
                left.append(name)
                right.append(f"{_BOX[out.spec.dtype.name]}({name})")
        writer.place.assign(node.kept, pushes)
        if self.trip in scope.last_use:
            writer.place[self.trip] = self.counter
            left.append(self.counter)
            right.append(f"int64({self.counter})")
        elif not self.counts_itself:
            writer.release_names([self.counter])
        _assign(writer, left, right, node)
        unused = [(v, writer.place.take(v)) for v in node.outputs
                  if v not in scope.last_use and v in writer.place]  # fmt: skip
        writer.release_names([*[x for _, x in unused], *self.taken, *self.limit])
        released = writer.release(scope, node)
        tail = writer.clear(scope, [*released, *unused])
        if tail:
            writer.emit(tail[2:])


_BOX = {"int32": "int32", "int64": "int64", "float64": "float64", "bool": "bool_"}


def number_type(value: Value) -> str:
    """Returns the name of Python's type for a value that is unboxed."""
    return {"i": "int", "f": "float", "b": "bool"}[value.spec.dtype.kind]


def _wishes(body: Program, places: list[str]) -> dict[Value, str]:
    """Returns the place that each next value of a variable shall have."""
    return {v: name for v, name in zip(body.fetches, places, strict=False) if v not in body.feeds}


def _feeds(node: Node) -> set[Value]:
    found = {v for b in node.blocks for v in b.feeds}
    for b in node.blocks:
        for n in b.nodes:
            found |= _feeds(n)
    return found


def write_loop(writer: Writer, scope: BlockScope, node: LoopNode) -> None:
    """Writes a Loop node."""
    _LoopWriter(writer, scope, node).write()
