"""Training: optimizers, savers, sessions that go on. Users enter by `fs.train`.

In: a loss. Out: an operation that runs one update. Called by users.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.graph.messages.example_messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from flowscope.runtime.config import ClusterDef, JobDef
from flowscope.train.checkpoint.checkpoint_manager import CheckpointManager
from flowscope.train.checkpoint.checkpoints import (
    CheckpointReader,
    CheckpointState,
    NewCheckpointReader,
    checkpoint_exists,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
    remove_checkpoint,
    update_checkpoint_state,
)
from flowscope.train.checkpoint.meta_graph import (
    export_meta_graph,
    read_meta_graph,
    write_graph,
)
from flowscope.train.checkpoint.meta_graph_import import import_meta_graph
from flowscope.train.checkpoint.object_checkpoint import Checkpoint
from flowscope.train.checkpoint.restore_report import RestoreReport
from flowscope.train.checkpoint.saver import Saver, restore_report
from flowscope.train.checkpoint.saver_ops import SaverDef
from flowscope.train.checkpoint.warm_start import VocabInfo, init_from_checkpoint, warm_start
from flowscope.train.cluster.cluster_spec import ClusterSpec
from flowscope.train.cluster.device_setter import replica_device_setter
from flowscope.train.cluster.pipeline import pipeline
from flowscope.train.cluster.server import Server
from flowscope.train.cluster.server_def import ServerDef
from flowscope.train.events.event_file import summary_iterator
from flowscope.train.input.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from flowscope.train.input.coordinator import Coordinator, LooperThread
from flowscope.train.input.input_producers import (
    input_producer,
    limit_epochs,
    match_filenames_once,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from flowscope.train.input.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from flowscope.train.optimizers.adadelta import AdadeltaOptimizer
from flowscope.train.optimizers.adagrad import (
    AdagradDAOptimizer,
    AdagradOptimizer,
    ProximalAdagradOptimizer,
)
from flowscope.train.optimizers.adam import AdamOptimizer
from flowscope.train.optimizers.ftrl import FtrlOptimizer
from flowscope.train.optimizers.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from flowscope.train.optimizers.gradient_descent import (
    GradientDescentOptimizer,
    ProximalGradientDescentOptimizer,
)
from flowscope.train.optimizers.lbfgs import LBFGSOptimizer
from flowscope.train.optimizers.momentum import MomentumOptimizer
from flowscope.train.optimizers.moving_averages import ExponentialMovingAverage
from flowscope.train.optimizers.optimizer import Optimizer
from flowscope.train.optimizers.rmsprop import RMSPropOptimizer
from flowscope.train.optimizers.schedules import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from flowscope.train.optimizers.sharded import sharded
from flowscope.train.report import ParameterReport, non_finite_variables, parameter_report
from flowscope.train.session.hooks.checkpoints import CheckpointSaverHook, CheckpointSaverListener
from flowscope.train.session.hooks.ending import (
    FinalOpsHook,
    GlobalStepWaiterHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    StopAtStepHook,
)
from flowscope.train.session.hooks.profiling import FeedFnHook, ProfilerHook
from flowscope.train.session.hooks.reporting import (
    LoggingTensorHook,
    StepCounterHook,
    SummarySaverHook,
)
from flowscope.train.session.hooks.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowscope.train.session.hooks.timing import SecondOrStepTimer
from flowscope.train.session.monitored_session import (
    MonitoredSession,
    MonitoredTrainingSession,
    SingularMonitoredSession,
)
from flowscope.train.session.scaffold import Scaffold
from flowscope.train.session.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from flowscope.train.session.session_manager import SessionManager
from flowscope.train.session.supervisor import Supervisor, basic_train_loop
from flowscope.train.session.sync_replicas import SyncReplicasOptimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointReader",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "CheckpointState",
    "ChiefSessionCreator",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",
    "JobDef",
    "LBFGSOptimizer",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ParameterReport",
    "ProfilerHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "RestoreReport",
    "Saver",
    "SaverDef",
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",
    "Server",
    "ServerDef",
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "Supervisor",
    "SyncReplicasOptimizer",
    "VocabInfo",
    "WorkerSessionCreator",
    "add_queue_runner",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "export_meta_graph",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "non_finite_variables",
    "parameter_report",
    "piecewise_constant",
    "piecewise_constant_decay",
    "pipeline",
    "polynomial_decay",
    "range_input_producer",
    "read_meta_graph",
    "remove_checkpoint",
    "replica_device_setter",
    "restore_report",
    "sharded",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
