"""Options of sessions and runs, under TensorFlow 1's names, as plain classes."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal

from flowscope.graph.late import frozen, mutable

__all__ = [
    "ConfigProto",
    "FeedStats",
    "GPUOptions",
    "GraphOptions",
    "OptimizerOptions",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "StepStats",
]


@mutable
class OptimizerOptions:
    """How graphs are simplified before they run."""

    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0
    opt_level: int = 0


@mutable
class RewriterConfig:
    """Switches of graph rewriting; kept so that programs which set them run."""

    disable_meta_optimizer: bool = False
    disable_model_pruning: bool = False


@mutable
class GraphOptions:
    """Options of planning."""

    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)
    rewrite_options: RewriterConfig = field(default_factory=RewriterConfig)


@mutable
class GPUOptions:
    """Options of GPU devices."""

    allow_growth: bool = True
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


@mutable
class ConfigProto:
    """Options of a session.

    Attributes:
        device_count: At most so many devices per type, e.g. {"CPU": 2}; by default one CPU. GPUs
            (through CuPy) are used where "GPU" is given.
        fake_devices: Fake devices per type, e.g. {"GPU": 1}: for tests, without a GPU.
        allow_soft_placement: Whether a device wish that cannot be fulfilled is passed over.
        log_device_placement: Whether each new plan's placement is printed.
        intra_op_parallelism_threads: Threads of large matrix products and of large element-wise
            operations, for the whole process; 0 leaves it to the BLAS library, and takes up to four
            for the others. On a machine whose few cores are busy 1 is best.
        operation_timeout_in_ms: Timeout of each run that has none of its own; 0 for none.
        mode: "compiled" runs generated code, "op" one operation at a time, "tokens" one operation
            at a time as its inputs arrive, with several iterations of a loop on their way.
        plan_cache_size: So many plans are kept, and fewer where they are large; those that were not
            used for longest go first.
    """

    device_count: dict[str, int] = field(default_factory=dict)
    fake_devices: dict[str, int] = field(default_factory=dict)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    operation_timeout_in_ms: int = 0
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    mode: Literal["compiled", "op", "tokens"] = "compiled"
    plan_cache_size: int = 4096


@mutable
class RunOptions:
    """Options of one run.

    Attributes:
        trace_level: One of the constants.
        timeout_in_ms: The run ends with DeadlineExceededError at its first safepoint after so many
            milliseconds, also while it is paused; 0 for none.
        output_partition_graphs: Whether `RunMetadata.partition_graphs` is filled.
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
    mode: Literal["compiled", "op", "tokens"] | None = None


@frozen
class FeedStats:
    """How one feed came into a run.

    Attributes:
        name: The tensor's name.
        nbytes: Bytes of the array that was used.
        copied: Why the value was copied; "" if it was used as it is.
    """

    name: str
    nbytes: int
    copied: str


@frozen
class StepStats:
    """What is known of a run after it.

    Attributes:
        total_ns: Nanoseconds from the call to the result.
        step_ns: Of these, those in the step itself, without waiting for its turn while paused.
        plan_was_cached: Whether the plan was there.
        feeds: One per feed, in their order.
        fetched_bytes: Bytes of all fetched values.
    """

    total_ns: int
    step_ns: int
    plan_was_cached: bool
    feeds: tuple[FeedStats, ...]
    fetched_bytes: int

    @property
    def fed_bytes(self) -> int:
        """Bytes of all fed values."""
        return sum(f.nbytes for f in self.feeds)


@mutable
class RunMetadata:
    """What a run can tell about itself.

    Attributes:
        plan: The plan that was run; `plan.text()` shows it.
        partition_graphs: The program of each device as text, where the options ask for it.
        step_stats: Times, bytes, copies.
    """

    plan: Any = None
    partition_graphs: list[str] = field(default_factory=list)
    step_stats: StepStats | None = None
