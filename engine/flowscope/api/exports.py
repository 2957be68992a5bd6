"""What the package shows, written for Python and type checkers: `python -m flowscope.api.exports`.

`import flowscope` loads no family of ops, `fs.nn` no network: a name is looked up when it is first
used. Where it is found stands in `public_names` and `part_names` beside this file, for Python,
and in stubs (`__init__.pyi`, `nn.pyi`, ...) in the package's root, for type checkers and editors.
All are written from the lists here and from the modules' `__all__`; a test compares them.

Source: the convention of lazy_loader (a stub beside a package that loads at need).
"""

from __future__ import annotations

import pkgutil
import types
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

#: Parts of the package: `fs.nn`.
PARTS = """
    bitwise cluster coconet collectives contrib data debugging dtypes errors experimental
    graph_util image initializers io layers linalg lookup losses manip math metrics nest nn onnx
    python_io quantization queue random raw_ops replicator saved_model sets signal sparse spectral
    strings summary test tracing train
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
    "flowscope.control.dynamic.raw",
    "flowscope.control.record",
    "flowscope.control.arrays.tensor_array",
    "flowscope.control.version",
    "flowscope.control.while_loop",
    "flowscope.graph.indexed_slices",
    "flowscope.graph.scopes",
    "flowscope.graph.specs",
    "flowscope.graph.messages.tensor_proto",
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
    "flowscope.ops.host.files",
    "flowscope.ops.host.printing",
    "flowscope.ops.host.py_functions",
    "flowscope.ops.host.timing",
    "flowscope.ops.input.readers",
    "flowscope.ops.input.tensor_strings",
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
    "flowscope.ops.state.containers.accumulators",
    "flowscope.ops.state.containers.barriers",
    "flowscope.ops.state.initializers",
    "flowscope.ops.state.containers.locks",
    "flowscope.ops.state.partitioned_variable",
    "flowscope.ops.state.containers.queues",
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
    "flowscope.errors": (
        "ControlFlowWarning DeviceWarning GraphGrowthWarning OpError VersionWarning"
    ),
    "flowscope.cells": "forget_cell",
    "flowscope.graph.constant": "constant convert_to_tensor",
    "flowscope.graph.default": ("get_default_graph get_default_session reset_default_graph"),
    "flowscope.graph.devices": "DeviceSpec",
    "flowscope.plan.analysis.device_profile": "DeviceProfile Link=DeviceLink",
    "flowscope.runtime.devices.device_registry": "DeviceRequest register_device",
    "flowscope.runtime.devices.device": "Device",
    "flowscope.graph.messages.event_messages": (
        "Event HistogramProto SessionLog Summary SummaryMetadata"
    ),
    "flowscope.graph.values.dtypes": (
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
    "flowscope.graph.values.shapes": "Dimension TensorShape dimension_at_index dimension_value",
    "flowscope.live.watchers.ipython": "load_ipython_extension unload_ipython_extension",
    "flowscope.live.answers.progress": "progress",
    "flowscope.live.watchers.show": "save_html show to_graphviz",
    "flowscope.ops.input.examples": (
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example "
        "parse_single_example parse_single_sequence_example"
    ),
    "flowscope.ops.quantized.images": "quantized_concat",
    "flowscope.ops.state.matrix_initializers": "orthogonal_initializer",
    "flowscope.runtime.state.containers": "container",
    "flowscope.runtime.session.interactive": "InteractiveSession",
    "flowscope.runtime.threads.report": "runtime_report",
    "flowscope.runtime.session.session": "Session",
    "flowscope.train.optimizers.moving_averages": "moving_average_variables",
    "flowscope.tracing.profile": "profile",
}

#: What parts show, by modules: "*" for all that `__all__` names, names, or "theirs=ours". They are
#: loaded one by one, see `lazy_parts`.
LAZY_PARTS = {
    "bitwise": {
        "flowscope.ops.math.bits": "*",
    },
    "collectives": {
        "flowscope.ops.collective.functions": "*",
        "flowscope.ops.collective.references": "*",
    },
    "contrib": {
        "flowscope.data": "framework",
        "flowscope.ops.collective": "nccl",
        "flowscope.ops.state.containers": "staging",
        "flowscope.ops.tables": "contrib=lookup",
        "flowscope.train.cluster": "ps_strategies=training",
        "flowscope.train.optimizers": "lazy_adam=opt",
    },
    "image": {
        "flowscope.ops.input.images": "*",
    },
    "linalg": {
        "flowscope.ops.array.clipping": "global_norm",
        "flowscope.ops.array.one_hot": "eye",
        "flowscope.ops.linalg.einsum": "einsum",
        "flowscope.ops.linalg.factors": "cholesky lu lu_matrix_inverse lu_reconstruct lu_solve qr",
        "flowscope.ops.linalg.matrices": (
            "diag=tensor_diag diag_part=tensor_diag_part matrix_band_part=band_part "
            "matrix_diag=diag matrix_diag_part=diag_part matrix_set_diag=set_diag"
        ),
        "flowscope.ops.linalg.matrix_functions": (
            "matrix_exponential=expm matrix_logarithm=logm matrix_square_root=sqrtm"
        ),
        "flowscope.ops.linalg.norms": "norm normalize",
        "flowscope.ops.linalg.products": (
            "adjoint cross matmul matrix_transpose matrix_transpose=transpose matvec tensordot "
            "trace"
        ),
        "flowscope.ops.linalg.solving": (
            "cholesky_solve logdet matrix_determinant=det matrix_inverse=inv "
            "matrix_solve=solve matrix_solve_ls=lstsq matrix_triangular_solve=triangular_solve "
            "slogdet"
        ),
        "flowscope.ops.linalg.spectra": (
            "eig eigvals matrix_rank pinv self_adjoint_eig=eigh self_adjoint_eigvals=eigvalsh svd"
        ),
        "flowscope.ops.linalg.tridiagonal": "tridiagonal_matmul tridiagonal_solve",
        "flowscope.ops.nn.normalization": "l2_normalize",
    },
    "lookup": {
        "flowscope.ops.tables": "experimental",
        "flowscope.ops.tables.initializers": (
            "KeyValueTensorInitializer TextFileIndex TextFileInitializer"
        ),
        "flowscope.ops.tables.tables": "StaticHashTable",
        "flowscope.ops.tables.vocabularies": "StaticVocabularyTable",
    },
    "losses": {
        "flowscope.ops.objectives.losses": "*",
    },
    "manip": {
        "flowscope.ops.array.gathering": "gather_nd scatter_nd",
        "flowscope.ops.array.moving": "reverse roll",
        "flowscope.ops.array.padding": "tile",
        "flowscope.ops.array.shaping": "reshape",
        "flowscope.ops.array.space_to_batch": "batch_to_space_nd space_to_batch_nd",
    },
    "math": {
        "flowscope.ops.array.segments": "*",
        "flowscope.ops.array.shaping": "invert_permutation",
        "flowscope.ops.core.casting": "*",
        "flowscope.ops.linalg.products": "*",
        "flowscope.ops.math": "special",
        "flowscope.ops.math.arithmetic": "* add_n",
        "flowscope.ops.math.counting": "*",
        "flowscope.ops.math.elementwise": "*",
        "flowscope.ops.math.reductions": "*",
        "flowscope.ops.math.scans": "*",
        "flowscope.ops.math.special": "*",
        "flowscope.ops.nn.activations": "softsign zero_fraction",
        "flowscope.ops.nn.normalization": "l2_normalize",
        "flowscope.ops.nn.softmax": "log_softmax softmax",
        "flowscope.ops.nn.top_k": "in_top_k top_k",
        "flowscope.ops.objectives.confusion": "*",
    },
    "metrics": {
        "flowscope.ops.objectives.metrics": "*",
        "flowscope.ops.objectives.metrics_binary": "*",
        "flowscope.ops.objectives.metrics_ranking": "*",
    },
    "nn": {
        "flowscope.ops.array.space_to_batch": (
            "batch_to_space depth_to_space space_to_batch space_to_depth"
        ),
        "flowscope.ops.math.elementwise": "log_sigmoid sigmoid softplus tanh",
        "flowscope.ops.nn.activations": "*",
        "flowscope.ops.nn.bias": "*",
        "flowscope.ops.nn.candidate_sampling": "*",
        "flowscope.ops.nn.convolution": "*",
        "flowscope.ops.nn.ctc": "*",
        "flowscope.ops.nn.ctc_labels": "*",
        "flowscope.ops.nn.dropout": "*",
        "flowscope.ops.nn.fractional_pooling": "*",
        "flowscope.ops.nn.learned_sampling": "*",
        "flowscope.ops.nn.moments": "*",
        "flowscope.ops.nn.morphology": "*",
        "flowscope.ops.nn.normalization": "*",
        "flowscope.ops.nn.pooling": "*",
        "flowscope.ops.nn.softmax": "*",
        "flowscope.ops.nn.top_k": "*",
        "flowscope.ops.nn.with_space_to_batch": "*",
        "flowscope.ops.objectives.cross_entropy": "*",
        "flowscope.ops.objectives.l2_loss": "*",
        "flowscope.ops.objectives.sampled_losses": "*",
        "flowscope.ops.quantized.images": "*",
        "flowscope.ops.sparse.embedding": "*",
        "flowscope.rnn": "rnn_cell",
        "flowscope.rnn.dynamic": "*",
        "flowscope.rnn.raw": "*",
        "flowscope.rnn.static": "*",
    },
    "python_io": {
        "flowscope.ops.input.python_io": "*",
    },
    "quantization": {
        "flowscope.ops.quantized.fake_quant": "*",
        "flowscope.ops.quantized.images": "quantized_concat",
        "flowscope.ops.quantized.quantization": "* quantized_matmul",
        "flowscope.ops.quantized.quantize_and_dequantize": "*",
    },
    "random": {
        "flowscope.ops.nn.candidate_sampling": (
            "all_candidate_sampler fixed_unigram_candidate_sampler "
            "log_uniform_candidate_sampler uniform_candidate_sampler"
        ),
        "flowscope.ops.nn.learned_sampling": "learned_unigram_candidate_sampler",
        "flowscope.ops.random.distributions": (
            "categorical multinomial random_gamma=gamma random_poisson=poisson"
        ),
        "flowscope.ops.random.normal_and_uniform": (
            "random_normal=normal random_uniform=uniform truncated_normal"
        ),
        "flowscope.ops.random.seeds": "fold_seeds get_seed set_random_seed",
        "flowscope.ops.random.shuffling": "random_shuffle=shuffle",
        "flowscope.ops.random.stateless": (
            "stateless_binomial stateless_categorical stateless_gamma stateless_multinomial "
            "stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform"
        ),
    },
    "queue": {
        "flowscope.ops.state.containers.queues": "*",
    },
    "sets": {
        "flowscope.ops.sparse.sets": (
            "set_difference set_difference=difference set_intersection "
            "set_intersection=intersection set_size set_size=size set_union set_union=union"
        ),
    },
    "signal": {
        "flowscope.ops.signal.cosines": "dct idct",
        "flowscope.ops.signal.fourier": (
            "fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d"
        ),
        "flowscope.ops.signal.framing": "*",
    },
    "sparse": {
        "flowscope.ops.array.segments": (
            "sparse_segment_mean=segment_mean sparse_segment_sqrt_n=segment_sqrt_n "
            "sparse_segment_sum=segment_sum"
        ),
        "flowscope.ops.sparse.arithmetic": (
            "sparse_add=add sparse_maximum=maximum sparse_minimum=minimum "
            "sparse_reduce_max=reduce_max sparse_reduce_max_sparse=reduce_max_sparse "
            "sparse_reduce_sum=reduce_sum sparse_reduce_sum_sparse=reduce_sum_sparse "
            "sparse_softmax=softmax sparse_tensor_dense_matmul=matmul "
            "sparse_tensor_dense_matmul=sparse_dense_matmul"
        ),
        "flowscope.ops.sparse.array_ops": (
            "expand_dims sparse_concat=concat sparse_fill_empty_rows=fill_empty_rows "
            "sparse_reorder=reorder sparse_reset_shape=reset_shape sparse_reshape=reshape "
            "sparse_retain=retain sparse_slice=slice sparse_split=split "
            "sparse_transpose=transpose"
        ),
        "flowscope.ops.sparse.conversion": (
            "eye from_dense sparse_mask=mask sparse_merge=merge "
            "sparse_tensor_to_dense=to_dense sparse_to_indicator=to_indicator"
        ),
        "flowscope.ops.sparse.sparse_tensor": "SparseTensor sparse_placeholder=placeholder",
        "flowscope.ops.state.containers.accumulators": "SparseConditionalAccumulator",
    },
    "spectral": {
        "flowscope.ops.signal.cosines": "dct idct",
        "flowscope.ops.signal.fourier": (
            "fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d"
        ),
    },
    "strings": {
        "flowscope.ops.strings.elementwise": (
            "as_string regex_full_match regex_replace string_format=format string_join=join "
            "string_length=length string_lower=lower string_strip=strip string_upper=upper "
            "substr unicode_transcode"
        ),
        "flowscope.ops.strings.hash_buckets": (
            "string_to_hash_bucket=to_hash_bucket "
            "string_to_hash_bucket_fast=to_hash_bucket_fast "
            "string_to_hash_bucket_strong=to_hash_bucket_strong"
        ),
        "flowscope.ops.strings.join_split": "bytes_split reduce_join split unsorted_segment_join",
        "flowscope.ops.strings.parsing": "string_to_number=to_number",
    },
    "summary": {
        "flowscope.graph.messages.event_messages": "Event SessionLog Summary",
        "flowscope.ops.host.summaries": "*",
        "flowscope.train.events.summary_writer": "*",
    },
}

#: Modules that fill registries of lower floors, see `flowscope.graph.providers`.
REGISTRIES = {
    "debuggers": "flowscope.debug",
    "cluster_connectors": "flowscope.cluster.servers.connecting",
    "dataset_reducers": "flowscope.runtime.datasets.dataset_reduction",
    "bundle_formats": "flowscope.tensorflow.checkpoints.bundle",
    "call_types": "flowscope.control.calls",
    "default_setters": "flowscope.graph.default",
    "deferrers": "flowscope.runtime.threads.interrupt",
    "densifier": "flowscope.ops.array.gathering",
    "cost_graphs": "flowscope.tracing.cost_graph",
    "device_stats": "flowscope.tracing.step_stats",
    "timelines": "flowscope.tracing.timeline",
    "differentiator": "flowscope.autodiff",
    "eager_calls": "flowscope.runtime.session.eager",
    "filler": "flowscope.ops.array.arrays",
    "function_makers": "flowscope.control.serialization",
    "input_replacer": "flowscope.control.dynamic.frames",
    "loop_gradients": "flowscope.control.loop_gradient",
    "kinds": (
        "flowscope.ops.sparse.sparse_tensor flowscope.ops.tables.tables "
        "flowscope.train.checkpoint.meta_graph"
    ),
    "observers": "flowscope.cells",
    "operator __getitem__": "flowscope.ops.array.slicing",
    "operator __matmul__": "flowscope.ops.linalg.products",
    "operator __sparse_mul__": "flowscope.ops.sparse.arithmetic",
    "operator __sparse_truediv__": "flowscope.ops.sparse.arithmetic",
    "packer": "flowscope.ops.array.joining",
    "queue_choosers": "flowscope.control.chosen_queue",
    "runner": "flowscope.runtime.session.session",
    "serializer default_values": "flowscope.graph.serialization.text_form",
    "serializer graph_def_of": "flowscope.graph.serialization.export",
    "serializer graph_of": "flowscope.graph.serialization.build",
    "serializer json_of": "flowscope.graph.serialization.json_form",
    "serializer read_json": "flowscope.graph.serialization.json_form",
    "serializer read_text": "flowscope.graph.serialization.text_reader",
    "serializer read_tensorflow": "flowscope.tensorflow.reading",
    "serializer write_tensorflow": "flowscope.tensorflow.writing",
    "serializer text_of": "flowscope.graph.serialization.text_form",
    "steps_of": "flowscope.runtime.session.engine",
}
_OPERATORS = "abs add and floordiv ge gt invert le lt mod mul neg or pow sub truediv xor".split()  # noqa: SIM905
REGISTRIES |= {f"operator __{name}__": "flowscope.ops.math.elementwise" for name in _OPERATORS}

_ABOUT = "Written by `python -m flowscope.api.exports`: what is changed here is lost."


def sources() -> dict[str, list[tuple[str, str]]]:
    """The public names: those of modules, each with the package's."""
    found: dict[str, list[tuple[str, str]]] = {}
    for module in WHOLE:
        found[module] = [(name, name) for name in import_module(module).__all__]
    for module, names in NAMES.items():
        pairs = [(name.partition("=")[0], name.rpartition("=")[2]) for name in names.split()]
        found[module] = found.get(module, []) + pairs
    return {module: sorted(set(pairs)) for module, pairs in sorted(found.items()) if pairs}


def stub() -> str:
    """Returns the text of `__init__.pyi`."""
    imports = [("flowscope", [(part, part) for part in PARTS]), *sources().items()]
    return f'"""{_ABOUT}"""\n\n{_shown(imports)}\n__version__: str\n'


def _shown(imports: Iterable[tuple[str, list[tuple[str, str]]]]) -> str:
    """Returns imports as a stub's text, and `__all__`: a renamed one is not public without it."""
    lines, names = [], []
    for module, pairs in imports:
        lines += [f"from {module} import (", *(f"    {a} as {b}," for a, b in pairs), ")"]
        names += [ours for _, ours in pairs]
    shown = [f'    "{name}",' for name in sorted(set(names))]
    return "\n".join([*lines, "", "__all__ = [", *shown, "]", ""])


def part_sources(part: str) -> dict[str, list[tuple[str, str]]]:
    """The public names in a part: those of modules, each with the part's."""
    found = {}
    for module, words in LAZY_PARTS[part].items():
        pairs = []
        for word in words.split():
            theirs, _, ours = word.partition("=")
            if word == "*":
                pairs += [(name, name) for name in import_module(module).__all__]
            else:
                pairs.append((theirs, ours or theirs))
        found[module] = sorted(set(pairs))
    return found


def part_stub(part: str) -> str:
    """Returns the text of a part's stub."""
    doc = import_module(f"flowscope.{part}").__doc__
    return f'"""{doc}\n\n{_ABOUT}\n"""\n\n{_shown(part_sources(part).items())}'


def part_table() -> str:
    """Returns the text of `api/part_names.py`."""
    lines = [f'"""Where the names of parts are found, see `lazy_parts`.\n\n{_ABOUT}\n"""', ""]
    lines += ['#: Per part and module, names or "theirs=ours".', "PART_NAMES = {"]
    for part in LAZY_PARTS:
        lines.append(f'    "{part}": {{')
        for module, pairs in part_sources(part).items():
            words = " ".join(a if a == b else f"{a}={b}" for a, b in pairs)
            lines.append(f'        "{module}": {_wrapped(words, " " * 8)},')
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


def table() -> str:
    """Returns the text of `api/public_names.py`."""
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
    load_all()
    found: dict[str, list[str]] = {}
    for name, op in sorted(import_module("flowscope.graph.op").all_ops().items()):
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
    lines += [f'    "{key}": {_wrapped(text, "    ", len(key) + 4)},' for key, text in rows.items()]
    return [*lines, "}"]


def _wrapped(text: str, indent: str, head: int = 47) -> str:
    """Words as a literal of lines that are short enough, behind so many characters."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if len(line) + len(word) > 88:
            lines, line = [*lines, line], ""
        line += f"{word} "
    parts = [*lines, line.rstrip()]
    if len(parts) == 1 and len(indent) + head + len(line) < 95:
        return f'"{parts[0]}"'
    body = "\n".join(f'{indent}    "{part}"' for part in parts)
    return f"(\n{body}\n{indent})"


def texts() -> dict[str, str]:
    """Returns the texts of all files that are written, by name."""
    found = {"__init__.pyi": stub()}
    found |= {"api/public_names.py": table(), "api/part_names.py": part_table()}
    return found | {f"{part}.pyi": part_stub(part) for part in LAZY_PARTS}


def write() -> None:
    """Writes all files."""
    for name, text in texts().items():
        (Path(__file__).parents[1] / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
