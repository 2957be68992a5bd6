"""What the package shows: `python -m flowscope.exports` writes it for Python and for type checkers.

`import flowscope` loads no family of ops: a name is looked up when it is first used. Where it is
found stands in `public_names.py`, for Python, and in `__init__.pyi`, for type checkers and editors.
Both are written from the lists here and from the modules' `__all__`; a test compares them.

Source: the convention of lazy_loader (a stub beside a package that loads at need).
"""

from __future__ import annotations

import pkgutil
import types
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from flowscope.graph import providers

#: Parts of the package: `fs.nn`.
PARTS = """
    bitwise debugging dtypes errors experimental graph_util initializers io layers linalg losses
    manip math metrics nest nn quantization random raw_ops sets signal sparse spectral strings test
    train
""".split()  # noqa: SIM905

#: Modules of which all that `__all__` names is shown.
WHOLE = (
    "flowscope.autodiff.custom_gradient",
    "flowscope.autodiff.hessians",
    "flowscope.autodiff.recompute",
    "flowscope.autodiff.registry",
    "flowscope.control.branches",
    "flowscope.control.function",
    "flowscope.control.functional",
    "flowscope.control.raw",
    "flowscope.control.record",
    "flowscope.control.tensor_array",
    "flowscope.control.version",
    "flowscope.control.while_loop",
    "flowscope.graph.indexed_slices",
    "flowscope.graph.scopes",
    "flowscope.graph.specs",
    "flowscope.graph.tensor_proto",
    "flowscope.ops.array.arrays",
    "flowscope.ops.array.batch_gathering",
    "flowscope.ops.array.clipping",
    "flowscope.ops.array.gathering",
    "flowscope.ops.array.joining",
    "flowscope.ops.array.moving",
    "flowscope.ops.array.one_hot",
    "flowscope.ops.array.padding",
    "flowscope.ops.array.patches",
    "flowscope.ops.array.segments",
    "flowscope.ops.array.selection",
    "flowscope.ops.array.shaping",
    "flowscope.ops.array.slicing",
    "flowscope.ops.array.space_to_batch",
    "flowscope.ops.array.sorting",
    "flowscope.ops.array.stitching",
    "flowscope.ops.array.tensor_scatters",
    "flowscope.ops.array.uniques",
    "flowscope.ops.core.broadcasting",
    "flowscope.ops.core.casting",
    "flowscope.ops.core.flow",
    "flowscope.ops.core.static_values",
    "flowscope.ops.core.type_checks",
    "flowscope.ops.host.checks",
    "flowscope.ops.host.printing",
    "flowscope.ops.host.py_functions",
    "flowscope.ops.host.timing",
    "flowscope.ops.linalg.einsum",
    "flowscope.ops.linalg.factors",
    "flowscope.ops.linalg.matrices",
    "flowscope.ops.linalg.matrix_functions",
    "flowscope.ops.linalg.norms",
    "flowscope.ops.linalg.products",
    "flowscope.ops.linalg.solving",
    "flowscope.ops.linalg.spectra",
    "flowscope.ops.math.arithmetic",
    "flowscope.ops.math.counting",
    "flowscope.ops.math.elementwise",
    "flowscope.ops.math.reductions",
    "flowscope.ops.math.scans",
    "flowscope.ops.math.special",
    "flowscope.ops.objectives.confusion",
    "flowscope.ops.quantized.fake_quant",
    "flowscope.ops.quantized.quantization",
    "flowscope.ops.random.distributions",
    "flowscope.ops.random.normal_and_uniform",
    "flowscope.ops.random.seeds",
    "flowscope.ops.random.shuffling",
    "flowscope.ops.signal.fourier",
    "flowscope.ops.sparse.arithmetic",
    "flowscope.ops.sparse.edit_distance",
    "flowscope.ops.sparse.array_ops",
    "flowscope.ops.sparse.conversion",
    "flowscope.ops.sparse.sparse_tensor",
    "flowscope.ops.state.initializers",
    "flowscope.ops.state.locks",
    "flowscope.ops.state.partitioned_variable",
    "flowscope.ops.state.queues",
    "flowscope.ops.state.scatters",
    "flowscope.ops.state.template",
    "flowscope.ops.state.variable_lists",
    "flowscope.ops.state.variable_scope",
    "flowscope.ops.state.variables",
    "flowscope.ops.strings.elementwise",
    "flowscope.ops.strings.hash_buckets",
    "flowscope.ops.strings.parsing",
    "flowscope.ops.strings.join_split",
    "flowscope.runtime.config",
)

#: What other modules show: names, or "theirs=ours".
NAMES = {
    "flowscope.autodiff.gradients": "AggregationMethod UnconnectedGradients gradients",
    "flowscope.errors": ("ControlFlowWarning DeviceWarning GraphGrowthWarning OpError"),
    "flowscope.cells": "forget_cell",
    "flowscope.graph.constant": "constant convert_to_tensor",
    "flowscope.graph.default": ("get_default_graph get_default_session reset_default_graph"),
    "flowscope.graph.devices": "DeviceSpec",
    "flowscope.graph.dtypes": (
        "QUANTIZED_DTYPES DType as_dtype bfloat16 bfloat16_ref bool_=bool bool_ref complex64 "
        "complex64_ref complex128 complex128_ref double double_ref float16 float16_ref float32 "
        "float32_ref float64 float64_ref half half_ref int8 int8_ref int16 int16_ref int32 "
        "int32_ref int64 int64_ref qint8 qint8_ref qint16 qint16_ref qint32 qint32_ref quint8 "
        "quint8_ref quint16 quint16_ref resource string string_ref uint8 uint8_ref uint16 "
        "uint16_ref uint32 uint32_ref uint64 uint64_ref variant"
    ),
    "flowscope.graph.graph": "Graph",
    "flowscope.graph.op": "Op Spec register_kernel",
    "flowscope.graph.operation": "Operation Tensor",
    "flowscope.graph.serialization.build": "import_graph_def",
    "flowscope.graph.serialization.definition": "GraphDef NodeDef",
    "flowscope.graph.serialization.meta": "MetaGraphDef",
    "flowscope.graph.shapes": "Dimension TensorShape dimension_at_index dimension_value",
    "flowscope.live.ipython": "load_ipython_extension unload_ipython_extension",
    "flowscope.live.progress": "progress",
    "flowscope.live.show": "show",
    "flowscope.ops.quantized.images": "quantized_concat",
    "flowscope.ops.state.matrix_initializers": "orthogonal_initializer",
    "flowscope.runtime.containers": "container",
    "flowscope.runtime.interactive": "InteractiveSession",
    "flowscope.runtime.session": "Session",
    "flowscope.train.moving_averages": "moving_average_variables",
}

#: Modules that fill registries of lower floors, see `flowscope.graph.providers`.
REGISTRIES = {
    "call_types": "flowscope.control.calls",
    "default_setters": "flowscope.graph.default",
    "deferrers": "flowscope.runtime.interrupt",
    "densifier": "flowscope.ops.array.gathering",
    "differentiator": "flowscope.autodiff",
    "eager_calls": "flowscope.runtime.eager",
    "function_makers": "flowscope.control.serialization",
    "input_replacer": "flowscope.control.frames",
    "loop_gradients": "flowscope.control.loop_gradient",
    "kinds": "flowscope.ops.sparse.sparse_tensor flowscope.train.meta_graph",
    "observers": "flowscope.cells",
    "operator __getitem__": "flowscope.ops.array.slicing",
    "operator __matmul__": "flowscope.ops.linalg.products",
    "operator __sparse_mul__": "flowscope.ops.sparse.arithmetic",
    "operator __sparse_truediv__": "flowscope.ops.sparse.arithmetic",
    "packer": "flowscope.ops.array.joining",
    "runner": "flowscope.runtime.session",
    "serializer default_values": "flowscope.graph.serialization.text_form",
    "serializer graph_def_of": "flowscope.graph.serialization.export",
    "serializer graph_of": "flowscope.graph.serialization.build",
    "serializer json_of": "flowscope.graph.serialization.json_form",
    "serializer read_json": "flowscope.graph.serialization.json_form",
    "serializer read_text": "flowscope.graph.serialization.text_reader",
    "serializer text_of": "flowscope.graph.serialization.text_form",
    "steps_of": "flowscope.runtime.engine",
}
_OPERATORS = "abs add and floordiv ge gt invert le lt mod mul neg or pow sub truediv xor".split()  # noqa: SIM905
REGISTRIES |= {f"operator __{name}__": "flowscope.ops.math.elementwise" for name in _OPERATORS}

_ABOUT = "Written by `python -m flowscope.exports`: what is changed here is lost."


def sources() -> dict[str, list[tuple[str, str]]]:
    """Returns what modules show: their names for it, and the package's."""
    found: dict[str, list[tuple[str, str]]] = {}
    for module in WHOLE:
        found[module] = [(name, name) for name in import_module(module).__all__]
    for module, names in NAMES.items():
        pairs = [(name.partition("=")[0], name.rpartition("=")[2]) for name in names.split()]
        found[module] = found.get(module, []) + pairs
    return {module: sorted(set(pairs)) for module, pairs in sorted(found.items()) if pairs}


def stub() -> str:
    """Returns the text of `__init__.pyi`."""
    lines = [f'"""{_ABOUT}"""', "", "from flowscope import ("]
    lines += [*(f"    {part} as {part}," for part in PARTS), ")"]
    for module, pairs in sources().items():
        lines += [f"from {module} import ("]
        lines += [*(f"    {theirs} as {ours}," for theirs, ours in pairs), ")"]
    return "\n".join([*lines, "", "__version__: str", ""])


def table() -> str:
    """Returns the text of `public_names.py`."""
    shown = {
        module: " ".join(a if a == b else f"{a}={b}" for a, b in pairs)
        for module, pairs in sources().items()
    }
    return "\n".join(
        [
            '"""Where the package\'s names are found, by module: names, or "theirs=ours".',
            "",
            _ABOUT,
            '"""',
            "",
            "#: Parts of the package: `fs.nn`.",
            f"PARTS = {_wrapped(' '.join(PARTS), '')}",
            *_entries("What modules show.", "NAMES", shown),
            *_entries("Op types that modules define.", "OP_TYPES", op_types()),
            *_entries("Modules that fill registries.", "REGISTRIES", REGISTRIES),
            "",
        ]
    )


def op_types() -> dict[str, str]:
    """Returns the names of the op types that each module defines."""
    from flowscope.graph.op import all_ops

    load_all()
    found: dict[str, list[str]] = {}
    for name, op in sorted(all_ops().items()):
        if op.__module__.startswith("flowscope."):
            found.setdefault(op.__module__, []).append(name)
    return {module: " ".join(names) for module, names in sorted(found.items())}


def load_all() -> None:
    """Loads all modules of the package."""
    package = import_module("flowscope")
    for module in _modules_of(package):
        if not module.endswith(("__main__", ".cupy")):
            import_module(module)


def _modules_of(package: types.ModuleType) -> Iterable[str]:
    return [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]


def _entries(about: str, name: str, rows: dict[str, str]) -> list[str]:
    lines = [f"#: {about}", f"{name} = {{"]
    lines += [f'    "{key}": {_wrapped(text, "    ")},' for key, text in rows.items()]
    return [*lines, "}"]


def _wrapped(text: str, indent: str) -> str:
    """Returns words as a literal of lines that are short enough."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if len(line) + len(word) > 88:
            lines, line = [*lines, line], ""
        line += f"{word} "
    parts = [*lines, line.rstrip()]
    if len(parts) == 1 and len(line) < 40:
        return f'"{parts[0]}"'
    body = "\n".join(f'{indent}    "{part}"' for part in parts)
    return f"(\n{body}\n{indent})"


def write() -> None:
    """Writes both files."""
    providers.op_types.clear()  # where ops stood when the files were written last
    folder = Path(__file__).parent
    for name, text in (("__init__.pyi", stub()), ("public_names.py", table())):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
