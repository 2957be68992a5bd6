"""Modules hold no state that a second engine in the process would share.

What a module holds and somebody changes is listed here, each with the reason why that is right:
registries that fill while modules load, caches of pure functions, what belongs to the process, the
interpreter or a thread and not to an engine. A table that nobody changes is no state.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import flowscope

ROOT = Path(flowscope.__file__).parent

#: What makes something that changes, wherever it is used.
STATEFUL = {
    "Condition", "ContextVar", "Counter", "Event", "Lock", "RLock", "WeakKeyDictionary", "WeakSet",
    "WeakValueDictionary", "count", "defaultdict", "deque", "local",
}  # fmt: skip
#: What makes a container: state where somebody changes it.
CONTAINERS = {"OrderedDict", "bytearray", "dict", "list", "set"}
#: What changes a container.
CHANGES = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert",
    "pop", "popitem", "popleft", "remove", "setdefault", "sort", "update",
}  # fmt: skip

#: Registries that a higher floor fills while it loads, with code and nothing else.
REGISTRY = "filled with functions and classes while modules load"
#: What was worked out once and would be worked out to the same again.
CACHE = "remembers what a pure function has returned"
#: Definitions by name are Python's own: of a class or function there is one in a process.
DEFINITIONS = "definitions by name belong to the process, as classes and functions do"
#: Who wants threads to change soon, and what the user has set before.
INTERPRETER = "the switch interval belongs to the interpreter, and so does who has changed it"
#: Python has one `sys.modules`.
MODULES = "modules belong to the process"
#: A signal comes to the main thread of the process.
SIGNALS = "signals belong to the process"

ALLOWED = {
    "._found": REGISTRY,
    "autodiff.registry._registered": DEFINITIONS,
    "autodiff.registry._by_cells": DEFINITIONS,
    "cells.interrupts.deferrers": REGISTRY,
    "cells.notebook.notebook": "a process is the ipykernel of one notebook, and graphs have cells",
    "cells.notebook.steps_of": REGISTRY,
    "control.blocks.aggregation_method": "how a call of `gradients` sums, on its own thread",
    "control.blocks.call_types": REGISTRY,
    "control.blocks.differentiable": REGISTRY,
    "control.blocks.differentiator": REGISTRY,
    "control.loop.loop_gradients": REGISTRY,
    "cluster.shipping.own_modules._known": MODULES,
    "cluster.shipping.sent_modules.sent_modules": MODULES,
    "cluster.transport.switch_interval.ShortSwitches._lock": INTERPRETER,
    "graph.current_step.background": REGISTRY,
    "graph.current_step.preparations_of_threads": "what a thread prepares for a step of its own",
    "graph.current_step.steps_of_threads": "a thread works for one step, of whichever engine",
    "graph.current_step._thread_owners": "in a forked process the threads of all engines are gone",
    "graph.default._Base.graph": "the default graph below all threads' stacks, as in TensorFlow",
    "graph.default._Base.session": "the interactive session, which is the process's default one",
    "graph.default._graph": "a stack of the thread's own",
    "graph.default._session": "a stack of the thread's own",
    "graph.graph.default_setters": REGISTRY,
    "graph.indexed_slices.densifier": REGISTRY,
    "graph.origins.observer.observers": REGISTRY,
    "graph.op._arriving": "what a thread defines while it takes what another process sends",
    "graph.op._families": REGISTRY,
    "runtime.devices.device_registry._makers": REGISTRY,
    "runtime.session.remote.cluster_connectors": REGISTRY,
    "runtime.state.random_generators._local": "a thread's own generator, set anew for each draw",
    "graph.op._kernels": REGISTRY,
    "graph.origins.assigned._names": CACHE,
    "graph.origins.assigned._spans": CACHE,
    "graph.op._registry": REGISTRY,
    "graph.operation.input_replacer": REGISTRY,
    "graph.operation.runner": REGISTRY,
    "graph.origins.origin._kind_of_file": CACHE,
    "graph.origins.origin._lines": CACHE,
    "graph.overloads.operators": REGISTRY,
    "graph.serialization.build.function_makers": REGISTRY,
    "graph.serialization.meta.kinds": REGISTRY,
    "graph.serialization.values.stand_ins": REGISTRY,
    "graph.providers.serializers": REGISTRY,
    "live.answers.asking._live": REGISTRY,
    "live.answers.asking._recorded": REGISTRY,
    "live.answers.asking._refusals": REGISTRY,
    "live.protocol.questions._answers": REGISTRY,
    "ops.core.casting._numpy_types": CACHE,
    "ops.host.py_functions._functions": DEFINITIONS,
    "ops.host.py_functions._numbers": DEFINITIONS,
    "ops.host.py_functions.eager_calls": REGISTRY,
    "ops.kernels.fused_updates._loops": CACHE,
    "ops.kernels.scipy_modules._loaded": CACHE,
    "ops.kernels.scipy_modules.finders": REGISTRY,
    "plan.codegen.function._numbers": "generated files are numbered: `linecache` has one list",
    "runtime.threads.blas.one_thread": "BLAS has one number of threads, the process's",
    "runtime.session.engine._default": "which engine is the default one, by thread and task",
    "runtime.session.engine._process": "the engine of the process, for programs that name none",
    "runtime.threads.interrupt._around": SIGNALS,
    "runtime.threads.interrupt._known": SIGNALS,
    "runtime.threads.interrupt._raised": SIGNALS,
    "runtime.threads.interrupt._waiting": SIGNALS,
    "runtime.config.device_stats": REGISTRY,
    "runtime.trace.cost_model.cost_graphs": REGISTRY,
    "runtime.config.timelines": REGISTRY,
    "runtime.waits.local_waits._collector": "the collector of garbage belongs to the interpreter",
    "ops.state.checkpoint_file.bundle_formats": REGISTRY,
    "ops.state.containers.queues.choosers": REGISTRY,
    "onnx.kernels.operator._functions": REGISTRY,
    "onnx.table._alone": REGISTRY,
    "onnx.table._converters": REGISTRY,
    "onnx.writers.writers": REGISTRY,
    "tensorflow.op_table.makers": REGISTRY,
    "tensorflow.op_writers.writers": REGISTRY,
    "runtime.session.session.debuggers": REGISTRY,
    "runtime.trace.tracers._changes": "held for one exchange of a tuple, whichever engine has it",
    "train.events.summary_writer.FileWriterCache._lock": "guards a process's writers, as there",
}
#: Kinds whose objects only remember what they have worked out of themselves.
CONSTANT = {"DType"}


def name_of(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def called(node: ast.expr) -> str:
    """Returns the name of what a call calls."""
    function = node.func if isinstance(node, ast.Call) else None
    while isinstance(function, ast.Subscript):
        function = function.value
    return getattr(function, "attr", getattr(function, "id", ""))


def is_container(value: ast.expr | None) -> bool:
    kinds = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    return isinstance(value, kinds) or (value is not None and called(value) in CONTAINERS)


def assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yields the names that a statement binds, with the values."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value  # type: ignore[attr-defined]


def dotted(node: ast.expr) -> str:
    """Returns a name, or a name and its attribute; "" for all else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def changed(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yields the names of what some code changes in place or binds anew."""
    for node in nodes:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                yield dotted(node.func.value)
        elif isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node.ctx, ast.Store | ast.Del):
                yield dotted(node.value)
                yield dotted(node)
        elif isinstance(node, ast.Global):
            yield from node.names


def changing_classes(trees: dict[str, ast.Module]) -> set[str]:
    """Returns the names of classes whose objects change after they were made."""
    return {
        kind.name
        for tree in trees.values()
        for kind in tree.body
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("__")
        and any(name.startswith("self.") for name in changed(ast.walk(method)))
    }  # fmt: skip


def found() -> dict[str, str]:
    """Returns the state of modules: what holds it, by its dotted name."""
    trees = {name_of(p): ast.parse(p.read_text()) for p in sorted(ROOT.rglob("*.py"))}
    nodes = {module: list(ast.walk(tree)) for module, tree in trees.items()}
    changes = {module: set(changed(every)) for module, every in nodes.items()}
    elsewhere = {
        (f"{(node.module or '').removeprefix('flowscope').lstrip('.')}", alias.name)
        for module, every in nodes.items()
        for node in every
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name) in changes[module]
    }
    changing = changing_classes(trees)
    state = {}
    for module, tree in trees.items():
        classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
        for node in tree.body:
            for name, value in assigned(node):
                is_changed = name in changes[module] or (module, name) in elsewhere
                if value is not None and called(value) in STATEFUL:
                    state[f"{module}.{name}"] = called(value)
                elif value is not None and called(value) in changing - CONSTANT:
                    state[f"{module}.{name}"] = f"a {called(value)}"
                elif is_container(value) and is_changed:
                    state[f"{module}.{name}"] = "container"
        names = {n for g in nodes[module] if isinstance(g, ast.Global) for n in g.names}
        state.update({f"{module}.{name}": "global" for name in names})
        for kind, body in classes.items():
            for node in body.body:
                for name, value in assigned(node):
                    if f"{kind}.{name}" in changes[module]:
                        state[f"{module}.{kind}.{name}"] = "class"
                    elif value is not None and called(value) in STATEFUL:
                        state[f"{module}.{kind}.{name}"] = called(value)
    return state


@pytest.mark.slow
def test_modules_hold_no_state_but_what_is_listed() -> None:
    state = found()
    assert not state.keys() - ALLOWED.keys(), "state of a module: let an engine or a graph own it"
    assert not ALLOWED.keys() - state.keys(), "listed, and no state any more"


def test_what_holds_state_is_found(tmp_path, monkeypatch) -> None:
    (tmp_path / "one.py").write_text(
        "import weakref\nknown = weakref.WeakSet()\ntable = {}\nconstant = {1: 2}\n"
        "class Box:\n    def put(self, x):\n        self.x = x\nbox = Box()\n"
        "def f(x):\n    global last\n    last = x\n"
    )
    (tmp_path / "two.py").write_text("from flowscope.one import table\ntable['a'] = 1\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert found().keys() == {"one.known", "one.table", "one.box", "one.last"}
