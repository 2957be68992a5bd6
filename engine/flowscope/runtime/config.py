"""Options of sessions and runs, under TensorFlow 1's names, as plain classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from flowscope.graph import providers
from flowscope.graph.lazy import frozen
from flowscope.graph.messages.message import Message, Repeated
from flowscope.plan.analysis.device_profile import DeviceProfile

__all__ = [
    "ClusterDef",
    "ConfigProto",
    "DeviceStepStats",
    "FeedStats",
    "GPUOptions",
    "GraphOptions",
    "JobDef",
    "NodeExecStats",
    "OptimizerOptions",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "StepStats",
]


class OptimizerOptions(Message):
    """How graphs are simplified before they run, in compiled mode.

    Attributes:
        opt_level: `L1`: equal operations are merged and constants folded; `L0`: as the next two
            fields say.
        do_common_subexpression_elimination: Whether equal operations are merged at `L0`.
        do_constant_folding: Whether constants are folded at `L0`.
        do_function_inlining: True or False: functions' bodies always take the place of their calls.
        max_folded_constant_in_bytes: Refused, if not 0.
        global_jit_level: `OFF` or `DEFAULT`: there is no XLA.
        cpu_global_jit: Refused.
    """

    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0
    DEFAULT: ClassVar[int] = 0
    OFF: ClassVar[int] = -1
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2
    do_common_subexpression_elimination: bool = False
    do_constant_folding: bool = False
    max_folded_constant_in_bytes: int = 0
    do_function_inlining: bool = False
    opt_level: int = 0
    global_jit_level: int = 0
    cpu_global_jit: bool = False

    @property
    def merges(self) -> bool:
        """Whether equal operations are merged."""
        return self.opt_level >= self.L1 or self.do_common_subexpression_elimination

    @property
    def folds(self) -> bool:
        """Whether constants are folded."""
        return self.opt_level >= self.L1 or self.do_constant_folding


class RewriterConfig(Message):
    """Switches of TensorFlow's graph rewriter, which is not here: off is all that they can be.

    `OptimizerOptions` say what is simplified.
    """

    DEFAULT: ClassVar[int] = 0
    ON: ClassVar[int] = 1
    OFF: ClassVar[int] = 2
    AGGRESSIVE: ClassVar[int] = 3
    DEFAULT_NUM_ITERS: ClassVar[int] = 0
    ONE: ClassVar[int] = 1
    TWO: ClassVar[int] = 2
    DEFAULT_MEM_OPT: ClassVar[int] = 0
    NO_MEM_OPT: ClassVar[int] = 1
    layout_optimizer: int = 0
    constant_folding: int = 0
    shape_optimization: int = 0
    remapping: int = 0
    common_subgraph_elimination: int = 0
    arithmetic_optimization: int = 0
    dependency_optimization: int = 0
    loop_optimization: int = 0
    function_optimization: int = 0
    debug_stripper: int = 0
    scoped_allocator_optimization: int = 0
    pin_to_host_optimization: int = 0
    implementation_selector: int = 0
    auto_mixed_precision: int = 0
    disable_meta_optimizer: bool = False
    disable_model_pruning: bool = False
    disable_tfg_optimizer: bool = False
    meta_optimizer_iterations: int = 0
    min_graph_nodes: int = 0
    memory_optimization: int = 0


class GraphOptions(Message):
    """Options of planning.

    Attributes:
        optimizer_options: How graphs are simplified.
        rewrite_options: Switches of TensorFlow's graph rewriter, which is not here.
        infer_shapes: True or False: shapes are always inferred.
        build_cost_model: Of so many runs of the same fetches and feeds one fills
            `RunMetadata.cost_graph`; 0 for none. Those runs are timed operation by operation.
        build_cost_model_after: So many runs come before the first of them are counted.
        enable_bfloat16_sendrecv: float32 numbers go to other devices, in this process too, by the
            upper 16 bits of each: half of the bytes, with 7 bits of each fraction. Variables that
            are read elsewhere, as by a saver, come so too.
        enable_recv_scheduling: Values come from other devices of a process when their use is near,
            also where operations run as tokens; in compiled and op mode they always do. Other
            processes' large values are asked for ahead, up to 256 MB.
        place_pruned_graph, timeline_step: Refused.
    """

    enable_recv_scheduling: bool = False
    optimizer_options: OptimizerOptions = OptimizerOptions()
    build_cost_model: int = 0
    build_cost_model_after: int = 0
    infer_shapes: bool = False
    place_pruned_graph: bool = False
    enable_bfloat16_sendrecv: bool = False
    timeline_step: int = 0
    rewrite_options: RewriterConfig = RewriterConfig()


class GPUOptions(Message):
    """Options of GPU devices, whose memory CuPy takes as it is needed.

    Attributes:
        allow_growth: True or False: memory is taken as it is needed.
        per_process_gpu_memory_fraction, visible_device_list, allocator_type,
            deferred_deletion_bytes, polling_active_delay_usecs, polling_inactive_delay_msecs,
            force_gpu_compatible: Refused.
    """

    per_process_gpu_memory_fraction: float = 0.0
    allow_growth: bool = False
    allocator_type: str = ""
    deferred_deletion_bytes: int = 0
    visible_device_list: str = ""
    polling_active_delay_usecs: int = 0
    polling_inactive_delay_msecs: int = 0
    force_gpu_compatible: bool = False


class JobDef(Message):
    """A job: processes that do the same.

    Attributes:
        name: Its name, such as "worker".
        tasks: The addresses of its tasks, "host:port", by their numbers.
    """

    name: str = ""
    tasks: dict[int, str] = {}  # noqa: RUF012


class ClusterDef(Message):
    """The jobs of a cluster.

    Attributes:
        job: The jobs.
    """

    job: Repeated[JobDef] = Repeated(JobDef)


class ConfigProto(Message):
    """Options of a session.

    Attributes:
        device_count: At most so many devices per type, e.g. {"CPU": 2}; by default one CPU. GPUs
            (through CuPy) are used where "GPU" is given.
        fake_devices: Simulated devices per type, in place of real ones: how many, or the
            `fs.DeviceProfile` of each, e.g. {"GPU": 1}. They compute with NumPy on a virtual clock.
        allow_soft_placement: Whether a device wish that cannot be fulfilled is passed over.
        log_device_placement: Whether each new plan's placement is printed.
        intra_op_parallelism_threads: Threads that share one operation: large matrix products and
            large element-wise operations. 0: as many as there are cores for this process (its
            affinity and its container's quota), up to four. The last session that says a number
            decides for the engine; outside of steps BLAS has it too.
        inter_op_parallelism_threads: Threads that run operations of a step which do not depend on
            each other: Python functions, and large work where it pays. 0: as many as that takes, up
            to the cores for large work; 1 or less than 0: the caller's alone, one operation after
            the other in the order of the program. Above 1 as 0.
        operation_timeout_in_ms: Timeout of each run that has none of its own; 0 for none.
        graph_options: How plans are made.
        gpu_options: About GPUs.
        isolate_session_state: True or False: a session has variables of its own, those in an
            `fs.container` apart.
        mode: "compiled" runs generated code, "op" one operation at a time, "tokens" one operation
            at a time as its inputs arrive, with several iterations of a loop on their way.
        placement: "default" takes the first device with a kernel, accelerators first, as TensorFlow
            does; "simulated" the device on which an operation finishes first in a simulated step,
            by costs that start from shapes and links. What was placed so stays where it is.
        split_partitions: Whether each CPU device of a step has a thread of its own. "never": the
            program of all devices is one function. "always": in every plan on several devices.
            "auto": in plans with loops where that is predicted to save time; large work outside of
            loops is shared between threads anyway. Results have the same bits.
        plan_cache_size: So many plans are kept, and fewer where they are large; those that were not
            used for longest go first.
        cluster_def: Of a session on a cluster: the tasks that it works on, all others are as if
            they were not there. Servers of one task each, in this process, make a cluster together,
            in which they have the names that it gives to their addresses.
        device_filters: Of a session on a cluster: the devices of other tasks that it works on, each
            by some parts of their names, such as "/job:ps".
        use_per_session_threads, session_inter_op_thread_pool, placement_period,
            share_cluster_devices_in_session: Refused.
    """

    device_count: dict[str, int] = {}  # noqa: RUF012
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    use_per_session_threads: bool = False
    session_inter_op_thread_pool: list[Any] = []  # noqa: RUF012
    placement_period: int = 0
    device_filters: list[str] = []  # noqa: RUF012
    gpu_options: GPUOptions = GPUOptions()
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    graph_options: GraphOptions = GraphOptions()
    operation_timeout_in_ms: int = 0
    isolate_session_state: bool = False
    share_cluster_devices_in_session: bool = False
    cluster_def: ClusterDef = ClusterDef()
    fake_devices: dict[str, int | list[DeviceProfile]] = {}  # noqa: RUF012
    mode: Literal["compiled", "op", "tokens"] = "compiled"
    placement: Literal["default", "simulated"] = "default"
    split_partitions: Literal["auto", "always", "never"] = "auto"
    plan_cache_size: int = 4096

    @property
    def overlaps(self) -> bool:
        """Whether operations of a step may run at the same time."""
        count = self.inter_op_parallelism_threads
        return count == 0 or count > 1


class RunOptions(Message):
    """Options of one run.

    Attributes:
        trace_level: One of the constants. Above `NO_TRACE` operations are timed one by one:
            `RunMetadata.step_stats.dev_stats` tells when each of them ran, and where.
        timeout_in_ms: The run ends with DeadlineExceededError at its first safepoint after so many
            milliseconds, also while it is paused; 0 for none.
        inter_op_thread_pool: 0 or -1: the caller's thread runs the step.
        output_partition_graphs: Whether `RunMetadata.partition_graphs` is filled.
        mode: Overrides the session's mode for this run.
        report_tensor_allocations_upon_oom: Refused.
    """

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3
    trace_level: int = 0
    timeout_in_ms: int = 0
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False
    mode: Literal["compiled", "op", "tokens"] | None = None


class AllocationRecord(Message):
    """Memory that was taken, or given back.

    Attributes:
        alloc_micros: When, in microseconds since 1970.
        alloc_bytes: How many bytes; negative where they were given back.
    """

    alloc_micros: int = 0
    alloc_bytes: int = 0


class AllocatorMemoryUsed(Message):
    """Memory that an operation has taken.

    Attributes:
        allocator_name: Whose memory.
        total_bytes, peak_bytes, live_bytes: Bytes of its outputs.
        allocation_records: When each output took its memory, and when that was given back.
    """

    allocator_name: str = ""
    total_bytes: int = 0
    peak_bytes: int = 0
    live_bytes: int = 0
    allocation_records: list[AllocationRecord] = []  # noqa: RUF012
    allocator_bytes_in_use: int = 0


class AllocationDescription(Message):
    """The memory of a tensor.

    Attributes:
        requested_bytes, allocated_bytes: Its bytes.
        allocator_name: Whose memory.
    """

    requested_bytes: int = 0
    allocated_bytes: int = 0
    allocator_name: str = ""
    allocation_id: int = 0
    has_single_reference: bool = False
    ptr: int = 0


class TensorShapeDim(Message):
    """The size of a dimension."""

    size: int = 0
    name: str = ""


class TensorShapeDims(Message):
    """A shape, as descriptions of tensors have it."""

    dim: list[TensorShapeDim] = []  # noqa: RUF012
    unknown_rank: bool = False


class TensorDescription(Message):
    """What is known of a tensor.

    Attributes:
        dtype: The number of its dtype.
        shape: Its shape.
        allocation_description: Its memory.
    """

    dtype: int = 0
    shape: TensorShapeDims = TensorShapeDims()
    allocation_description: AllocationDescription = AllocationDescription()


class NodeOutput(Message):
    """An output of an operation."""

    slot: int = 0
    tensor_description: TensorDescription = TensorDescription()


class MemoryStats(Message):
    """Memory of an operation beside its outputs.

    Attributes:
        temp_memory_size: 0: what kernels take for a moment is not measured.
        persistent_memory_size: Bytes of the variables that it writes, as far as shapes are known.
        persistent_tensor_alloc_ids: Empty: allocations have no numbers.
        device_temp_memory_size, device_persistent_memory_size, device_persistent_tensor_alloc_ids:
            As in TensorFlow 1, where they are not used any more.
    """

    temp_memory_size: int = 0
    device_temp_memory_size: int = 0
    persistent_memory_size: int = 0
    device_persistent_memory_size: int = 0
    persistent_tensor_alloc_ids: list[int] = []  # noqa: RUF012
    device_persistent_tensor_alloc_ids: list[int] = []  # noqa: RUF012


class NodeExecStats(Message):
    """One span of a traced run: an operation once, in one iteration.

    Attributes:
        node_name: The operation's name.
        all_start_micros: When it began, in microseconds since 1970.
        op_start_rel_micros, op_end_rel_micros: From there to the begin and end of its kernel.
        all_end_rel_micros: From there to its end.
        all_start_nanos, op_start_rel_nanos, op_end_rel_nanos, all_end_rel_nanos: The same.
        memory, output: Its outputs and their memory, as far as shapes are known; values of unknown
            size have no allocation records.
        memory_stats: Its memory beside these.
        timeline_label: Its name, op type and inputs, as timelines read them.
        scheduled_micros, scheduled_nanos: When it could begin: the last that it waits for had
            ended, or the step had begun.
        thread_id: The lane of its device, from 0.
    """

    node_name: str = ""
    all_start_micros: int = 0
    op_start_rel_micros: int = 0
    op_end_rel_micros: int = 0
    all_end_rel_micros: int = 0
    memory: list[AllocatorMemoryUsed] = []  # noqa: RUF012
    output: list[NodeOutput] = []  # noqa: RUF012
    timeline_label: str = ""
    scheduled_micros: int = 0
    thread_id: int = 0
    referenced_tensor: list[AllocationDescription] = []  # noqa: RUF012
    memory_stats: MemoryStats = MemoryStats()
    all_start_nanos: int = 0
    op_start_rel_nanos: int = 0
    op_end_rel_nanos: int = 0
    all_end_rel_nanos: int = 0
    scheduled_nanos: int = 0


class DeviceStepStats(Message):
    """What ran on a device in a traced run.

    Attributes:
        device: The device's name.
        node_stats: The spans, by begin.
        thread_names: Names of the lanes.
    """

    device: str = ""
    node_stats: list[NodeExecStats] = []  # noqa: RUF012
    thread_names: dict[int, str] = {}  # noqa: RUF012


#: Makes what `StepStats.dev_stats` tells of a traced step: `flowscope.tracing` does.
device_stats: list[Callable[[Any], tuple[DeviceStepStats, ...]]] = []
#: Makes the writer of `StepStats` in Chrome's format: `flowscope.tracing` does.
timelines: list[Callable[[Any], Any]] = []


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
        trace: Of a traced run: its trace.
    """

    total_ns: int
    step_ns: int
    plan_was_cached: bool
    feeds: tuple[FeedStats, ...]
    fetched_bytes: int
    trace: Any = None

    @functools.cached_property
    def dev_stats(self) -> tuple[DeviceStepStats, ...]:
        """Of a traced run: what ran when, per device."""
        if self.trace is None:
            return ()
        providers.load("device_stats")
        return device_stats[0](self.trace)

    @property
    def fed_bytes(self) -> int:
        """Bytes of all fed values."""
        return sum(f.nbytes for f in self.feeds)


class RunMetadata(Message):
    """What a run can tell about itself.

    Attributes:
        plan: The plan that was run; `plan.text()` shows it.
        partition_graphs: The program of each device as text, where the options ask for it.
        step_stats: Times, bytes, copies.
        cost_graph: What each operation cost, in the runs that `GraphOptions.build_cost_model` says:
            a `CostGraphDef`, see `flowscope.runtime.trace.cost_model`; None in others.
    """

    plan: Any = None
    partition_graphs: list[str] = []  # noqa: RUF012
    step_stats: StepStats | None = None
    cost_graph: Any = None

    def HasField(self, field_name: str) -> bool:
        """Whether the field is filled; `step_stats` of a traced run."""
        if field_name == "step_stats":
            return self.step_stats is not None and self.step_stats.trace is not None
        return super().HasField(field_name)

    def __repr__(self) -> str:
        return "" if self.plan is None else f"{self.step_stats}\n{self.plan.text()}\n"
