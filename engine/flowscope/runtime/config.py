"""Options of sessions and runs, under TensorFlow 1's names, as plain classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

__all__ = [
    "ConfigProto",
    "GPUOptions",
    "GraphOptions",
    "OptimizerOptions",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
]


@dataclass
class OptimizerOptions:
    """How graphs are simplified before they run."""

    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0
    opt_level: int = 0


@dataclass
class RewriterConfig:
    """Switches of graph rewriting; kept so that programs which set them run."""

    disable_meta_optimizer: bool = False
    disable_model_pruning: bool = False


@dataclass
class GraphOptions:
    """Options of planning."""

    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)
    rewrite_options: RewriterConfig = field(default_factory=RewriterConfig)


@dataclass
class GPUOptions:
    """Options of GPU devices."""

    allow_growth: bool = True
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


@dataclass
class ConfigProto:
    """Options of a session.

    Attributes:
        device_count: Devices per type, e.g. {"CPU": 2}; one CPU by default.
        allow_soft_placement: Whether a device wish that cannot be fulfilled is passed over.
        log_device_placement: Whether each new plan's placement is printed.
        operation_timeout_in_ms: 0 for none.
        mode: "compiled" runs generated code, "op" one operation at a time.
    """

    device_count: dict[str, int] = field(default_factory=dict)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    operation_timeout_in_ms: int = 0
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    mode: Literal["compiled", "op"] = "compiled"


@dataclass
class RunOptions:
    """Options of one run.

    Attributes:
        trace_level: One of the constants.
        timeout_in_ms: 0 for none.
        mode: Overrides the session's mode for this run.
    """

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3
    trace_level: int = 0
    timeout_in_ms: int = 0
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    mode: Literal["compiled", "op"] | None = None


@dataclass
class RunMetadata:
    """What a run can tell about itself.

    Attributes:
        plan: The plan that was run; `plan.text()` shows it.
    """

    plan: Any = None
