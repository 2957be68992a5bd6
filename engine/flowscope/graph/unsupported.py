"""Arguments and fields of TensorFlow 1 that are refused, and what to do instead: one table.

What a refused argument may be all the same is what asks for nothing: None, False, 0, "". A
capability that comes lifts its line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowscope.errors import UnimplementedError


class Refused(NamedTuple):
    """One argument or field.

    Attributes:
        instead: What to do instead.
        taken: The values that are taken, for they ask for nothing that is not so.
    """

    instead: str
    taken: tuple[Any, ...] = (None, False, 0, "", b"", (), [])


_BOUNDED = "fs.ConfigProto.intra_op_parallelism_threads bounds the threads of the process"
_CUDA = "CuPy takes memory as it is needed; set CUPY_GPU_MEMORY_LIMIT before the program starts"
_WORKS_ALONE = "a session has the devices of its own process"
_NO_REWRITER = "TensorFlow's graph rewriter is not here: leave it, or set OFF"
_OFF = (0, 2)
_ONE_GENERATOR = Refused("there is one generator of numbers", ("auto_select", None))

_OUT_OF_RANGE = Refused("an index out of range is an error", ("", "DEFAULT", "ERROR"))
_NO_TIMEOUT = Refused("fs.RunOptions(timeout_in_ms=...) bounds the whole step", (-1,))
_ONE_RULE = "write another rule with fs.assign, or see fs.train"
_OTHER_RULES = {
    "update_slots": Refused(_ONE_RULE, (True,)),
    "use_nesterov": Refused(_ONE_RULE),
    "multiply_linear_by_lr": Refused(_ONE_RULE),
}

#: By function or class, as users call it, and by argument or field.
REFUSED: Mapping[str, Mapping[str, Refused]] = {
    "Variable": {"import_scope": Refused("it belongs to variable_def")},
    "python_io.TFRecordOptions": {
        "input_buffer_size": Refused("leave it: records are handed to zlib one by one"),
    },
    "ConfigProto": {
        "use_per_session_threads": Refused(_BOUNDED),
        "session_inter_op_thread_pool": Refused(_BOUNDED),
        "placement_period": Refused("operations are placed when a plan is made"),
        "share_cluster_devices_in_session": Refused(_WORKS_ALONE),
    },
    "GraphOptions": {
        "place_pruned_graph": Refused("leave it: what a step needs is what is placed"),
        "timeline_step": Refused("fs.RunMetadata tells about single runs"),
    },
    "OptimizerOptions": {
        "max_folded_constant_in_bytes": Refused("opt_level=L0 folds no constants at all"),
        "global_jit_level": Refused("there is no XLA: compiled code is fused anyway", (0, -1)),
        "cpu_global_jit": Refused("there is no XLA: compiled code is fused anyway"),
    },
    "RewriterConfig": {
        **{
            name: Refused(_NO_REWRITER, _OFF)
            for name in (
                "layout_optimizer",
                "constant_folding",
                "shape_optimization",
                "remapping",
                "common_subgraph_elimination",
                "arithmetic_optimization",
                "dependency_optimization",
                "loop_optimization",
                "function_optimization",
                "debug_stripper",
                "scoped_allocator_optimization",
                "pin_to_host_optimization",
                "implementation_selector",
                "auto_mixed_precision",
            )
        },
        "meta_optimizer_iterations": Refused(_NO_REWRITER),
        "min_graph_nodes": Refused(_NO_REWRITER, (0, -1)),
        "memory_optimization": Refused(_NO_REWRITER, (0, 1)),
    },
    "GPUOptions": {
        "per_process_gpu_memory_fraction": Refused(_CUDA, (0.0, 0, 1.0, 1)),
        "allocator_type": Refused(_CUDA),
        "deferred_deletion_bytes": Refused(_CUDA),
        "visible_device_list": Refused("set CUDA_VISIBLE_DEVICES before the program starts"),
        "polling_active_delay_usecs": Refused("nothing is polled"),
        "polling_inactive_delay_msecs": Refused("nothing is polled"),
        "force_gpu_compatible": Refused("feed arrays of cupyx.empty_pinned"),
    },
    "RunOptions": {
        "inter_op_thread_pool": Refused("the caller's thread runs the step", (0, -1)),
        "report_tensor_allocations_upon_oom": Refused(
            "Plan.kept tells what loops keep, before any run"
        ),
    },
    "Graph.as_graph_def": {
        "from_version": Refused("take the nodes that you want out of GraphDef.node"),
    },
    "import_graph_def": {
        "op_dict": Refused("op types are registered by fs.Op"),
        "producer_op_list": Refused("op types are registered by fs.Op"),
    },
    "layers.Layer.add_loss": {"inputs": Refused("all of a layer's losses are listed together")},
    "layers.Layer.add_update": {"inputs": Refused("all of a layer's updates are listed together")},
    "random.stateless_uniform": {"alg": _ONE_GENERATOR},
    "random.stateless_normal": {"alg": _ONE_GENERATOR},
    "random.stateless_truncated_normal": {"alg": _ONE_GENERATOR},
    "raw_ops.VarHandleOp": {"allowed_devices": Refused("fs.device says where a variable lies")},
    **{
        f"raw_ops.{name}": {"new_axis_mask": Refused("a new axis cannot be assigned to")}
        for name in ("StridedSliceAssign", "ResourceStridedSliceAssign")
    },
    **{
        f"raw_ops.{kind}ScatterNd{how}": {"bad_indices_policy": _OUT_OF_RANGE}
        for kind in ("", "Resource")
        for how in ("Update", "Add", "Sub", "Min", "Max")
    },
    **{
        f"raw_ops.Queue{what}V2": {"timeout_ms": _NO_TIMEOUT}
        for what in ("Enqueue", "EnqueueMany", "Dequeue", "DequeueMany", "DequeueUpTo")
    },
    "raw_ops.Barrier": {"capacity": Refused("a barrier has no limit", (-1,))},
    "raw_ops.BarrierTakeMany": {
        "timeout_ms": _NO_TIMEOUT,
        "wait_for_incomplete": Refused("take what is complete"),
    },
    **{
        f"raw_ops.{kind}{rule}": {flag: _OTHER_RULES[flag]}
        for rule, flag in (
            ("ApplyAdagrad", "update_slots"),
            ("SparseApplyAdagrad", "update_slots"),
            ("ApplyAdam", "use_nesterov"),
            ("ApplyFtrl", "multiply_linear_by_lr"),
            ("ApplyFtrlV2", "multiply_linear_by_lr"),
            ("SparseApplyFtrl", "multiply_linear_by_lr"),
            ("SparseApplyFtrlV2", "multiply_linear_by_lr"),
        )
        for kind in ("", "Resource")
    },
    "data.TFRecordDataset": {"buffer_size": Refused("leave it: files are read by 256 kB")},
    "vectorized_map": {
        "fallback_to_while_loop": Refused("a map is a loop: use operations on a batch", (True,)),
    },
    "strided_slice": {"var": Refused("variable[...] can be assigned to")},
    "train.export_meta_graph": {
        "meta_info_def": Refused("write what belongs to the file beside it"),
        "clear_extraneous_savers": Refused("fs.Graph.clear_collection(fs.GraphKeys.SAVERS)"),
    },
    "summary.FileWriter": {
        "session": Refused("fetch summaries, and add what the run returns with add_summary"),
    },
    "train.Saver": {
        "builder": Refused("a saver builds its operations itself"),
        "write_version": Refused(
            "leave it for flowscope's format, or pass SaverDef.V2 for TensorFlow's", (None, 2)
        ),
    },
}


#: Arguments whose promise is kept whatever they say, by argument: why, for each function.
KEPT: Mapping[str, Mapping[str, str]] = {
    "use_locking": {"*": "writes of a variable are always atomic"},
    "use_node_name_sharing": {"*": "what has no shared_name always has the operation's"},
    "max_load_factor": {"*": "a hint: tables grow by a rule of their own"},
    "use_resource": {"Variable": "each variable has a handle"},
    "validate_indices": {"*": "indices are always checked"},
    "validate_args": {"*": "arguments are always checked"},
    "validate_shape": {"raw_ops.AssignVariableOp": "shapes are always checked"},
    "a_is_sparse": {"*": "a hint: a zero costs as much as any number"},
    "b_is_sparse": {"*": "a hint: a zero costs as much as any number"},
    "use_cudnn_on_gpu": {"*": "a hint for speed"},
    "optimize": {"einsum": "a hint: the pair with the smallest product comes first"},
    "unique": {"nn.ctc_loss_v2": "a hint for speed"},
    "shift": {"nn.moments": "a hint for precision: the mean is taken off first"},
    "sparse_gradient": {"*": "slices become dense where it matters"},
    "stable": {"argsort": "equal elements always stay in their order"},
    "sorted": {"math.top_k": "the largest always come first"},
    "seed": {"nn.compute_accidental_hits": "nothing is drawn there"},
    "warn": {"vectorized_map": "a map is a loop, which its documentation says"},
    "swap_memory": {"*": "a permission, of which no use is made"},
    "debug_name": {"raw_ops.VarHandleOp": "operations have names and lines"},
    "name": {"assert_scalar": "the check is made while the graph is built: nothing is named"},
    "renorm_momentum": {"layers.BatchNormalization": "it belongs to renorm, which is refused"},
    "input_shape": {"layers.Layer.build": "for layers of one's own, which replace the method"},
    "as_text": {"train.export_meta_graph": "the file is text"},
    "save_debug_info": {"*": "operations keep the lines that made them"},
    "add_shapes": {"*": "shapes are always there"},
    "graph": {"tracing.Timeline": "the statistics tell what ran"},
}


def kept(owner: str, name: str) -> str | None:
    """Returns why an argument's promise is kept whatever it says; None if that is not known."""
    reasons = KEPT.get(name, {})
    return reasons.get(owner.removesuffix(".__init__"), reasons.get("*"))


def as_markdown() -> str:
    """Returns the page that lists what is refused."""
    lines = [
        "# What is refused",
        "",
        "Arguments and fields of TensorFlow 1 that flowscope does not have. One that asks for",
        "something raises `UnimplementedError`; one that asks for nothing is taken.",
        "`python -m flowscope.ops.reference` writes this page.",
        "",
        "| | argument or field | what to do instead |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{owner}` | `{name}` | {refused.instead} |"
        for owner, names in sorted(REFUSED.items())
        for name, refused in names.items()
    ]
    lines += ["", "These are taken, for what they ask for is so in any case:", ""]
    lines += ["| argument | of | why |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {'all' if owner == '*' else f'`{owner}`'} | {why} |"
        for name, owners in sorted(KEPT.items())
        for owner, why in owners.items()
    ]
    return "\n".join(lines) + "\n"


def refuse(owner: str, **given: Any) -> None:
    """Raises UnimplementedError for arguments whose values ask for what is refused."""
    for name, value in given.items():
        refused = REFUSED[owner][name]
        if not any(value is t or (type(value) is type(t) and value == t) for t in refused.taken):
            raise UnimplementedError(
                f"{owner}: {name}={value!r} is not supported: {refused.instead}"
            )
