"""Ops under the names of TensorFlow's `raw_ops`, with keyword arguments only.

They build the same operations as the functions that programs mostly use. Plain functions, such as
`MatMul`, stand in the table of `raw_functions`, optimizers' updates in that of `raw_training`; the
rest are primitives of control flow and stacks, variables, tensor arrays, queues, blocks of
recurrent networks.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.control.arrays.raw_arrays import (
    TensorArrayCloseV2 as TensorArrayCloseV2,
    TensorArrayCloseV3 as TensorArrayCloseV3,
    TensorArrayConcatV2 as TensorArrayConcatV2,
    TensorArrayConcatV3 as TensorArrayConcatV3,
    TensorArrayGatherV2 as TensorArrayGatherV2,
    TensorArrayGatherV3 as TensorArrayGatherV3,
    TensorArrayReadV2 as TensorArrayReadV2,
    TensorArrayReadV3 as TensorArrayReadV3,
    TensorArrayScatterV2 as TensorArrayScatterV2,
    TensorArrayScatterV3 as TensorArrayScatterV3,
    TensorArraySizeV2 as TensorArraySizeV2,
    TensorArraySizeV3 as TensorArraySizeV3,
    TensorArraySplitV2 as TensorArraySplitV2,
    TensorArraySplitV3 as TensorArraySplitV3,
    TensorArrayV3 as TensorArrayV3,
    TensorArrayWriteV2 as TensorArrayWriteV2,
    TensorArrayWriteV3 as TensorArrayWriteV3,
)
from flowscope.control.dynamic.raw import (
    Add as Add,
    Any_ as Any,
    ControlTrigger as ControlTrigger,
    Enter as Enter,
    Exit as Exit,
    LoopCond as LoopCond,
    Merge as Merge,
    NextIteration as NextIteration,
    RefEnter as RefEnter,
    RefExit as RefExit,
    RefIdentity as RefIdentity,
    RefMerge as RefMerge,
    RefNextIteration as RefNextIteration,
    RefSwitch as RefSwitch,
    Stack as Stack,
    StackClose as StackClose,
    StackCloseV2 as StackCloseV2,
    StackPop as StackPop,
    StackPopV2 as StackPopV2,
    StackPush as StackPush,
    StackPushV2 as StackPushV2,
    StackV2 as StackV2,
    Switch as Switch,
    ToBool as ToBool,
)
from flowscope.ops.raw_functions import TABLE as _TABLE, raw_function as _raw_function
from flowscope.ops.state.raw.raw_queues import (
    FIFOQueue as FIFOQueue,
    FIFOQueueV2 as FIFOQueueV2,
    PaddingFIFOQueue as PaddingFIFOQueue,
    PaddingFIFOQueueV2 as PaddingFIFOQueueV2,
    PriorityQueue as PriorityQueue,
    PriorityQueueV2 as PriorityQueueV2,
    QueueClose as QueueClose,
    QueueCloseV2 as QueueCloseV2,
    QueueDequeue as QueueDequeue,
    QueueDequeueMany as QueueDequeueMany,
    QueueDequeueManyV2 as QueueDequeueManyV2,
    QueueDequeueUpTo as QueueDequeueUpTo,
    QueueDequeueUpToV2 as QueueDequeueUpToV2,
    QueueDequeueV2 as QueueDequeueV2,
    QueueEnqueue as QueueEnqueue,
    QueueEnqueueMany as QueueEnqueueMany,
    QueueEnqueueManyV2 as QueueEnqueueManyV2,
    QueueEnqueueV2 as QueueEnqueueV2,
    QueueIsClosed as QueueIsClosed,
    QueueIsClosedV2 as QueueIsClosedV2,
    QueueSize as QueueSize,
    QueueSizeV2 as QueueSizeV2,
    RandomShuffleQueue as RandomShuffleQueue,
    RandomShuffleQueueV2 as RandomShuffleQueueV2,
)
from flowscope.ops.state.raw.raw_training import RULES as _RULES
from flowscope.ops.state.raw.raw_variables import (
    Assign as Assign,
    AssignAdd as AssignAdd,
    AssignAddVariableOp as AssignAddVariableOp,
    AssignSub as AssignSub,
    AssignSubVariableOp as AssignSubVariableOp,
    AssignVariableOp as AssignVariableOp,
    CountUpTo as CountUpTo,
    DestroyResourceOp as DestroyResourceOp,
    IsVariableInitialized as IsVariableInitialized,
    ReadVariableOp as ReadVariableOp,
    ResourceCountUpTo as ResourceCountUpTo,
    ResourceGather as ResourceGather,
    ResourceGatherNd as ResourceGatherNd,
    ResourceScatterAdd as ResourceScatterAdd,
    ResourceScatterDiv as ResourceScatterDiv,
    ResourceScatterMax as ResourceScatterMax,
    ResourceScatterMin as ResourceScatterMin,
    ResourceScatterMul as ResourceScatterMul,
    ResourceScatterNdAdd as ResourceScatterNdAdd,
    ResourceScatterNdMax as ResourceScatterNdMax,
    ResourceScatterNdMin as ResourceScatterNdMin,
    ResourceScatterNdSub as ResourceScatterNdSub,
    ResourceScatterNdUpdate as ResourceScatterNdUpdate,
    ResourceScatterSub as ResourceScatterSub,
    ResourceScatterUpdate as ResourceScatterUpdate,
    ResourceStridedSliceAssign as ResourceStridedSliceAssign,
    ScatterAdd as ScatterAdd,
    ScatterDiv as ScatterDiv,
    ScatterMax as ScatterMax,
    ScatterMin as ScatterMin,
    ScatterMul as ScatterMul,
    ScatterNdAdd as ScatterNdAdd,
    ScatterNdMax as ScatterNdMax,
    ScatterNdMin as ScatterNdMin,
    ScatterNdSub as ScatterNdSub,
    ScatterNdUpdate as ScatterNdUpdate,
    ScatterSub as ScatterSub,
    ScatterUpdate as ScatterUpdate,
    StridedSliceAssign as StridedSliceAssign,
    VarHandleOp as VarHandleOp,
    Variable as Variable,
    VariableShape as VariableShape,
    VariableV2 as VariableV2,
    VarIsInitializedOp as VarIsInitializedOp,
)
from flowscope.rnn.raw_blocks import (
    BlockLSTM as BlockLSTM,
    BlockLSTMV2 as BlockLSTMV2,
    GRUBlockCell as GRUBlockCell,
    LSTMBlockCell as LSTMBlockCell,
)

__all__ = [n for n in globals() if not n.startswith("_")] + [*_RULES, *_TABLE]


def __getattr__(name: str) -> _typing.Any:
    """Returns a function of a table; raises AttributeError for another name."""
    if name in _TABLE:
        return _raw_function(name)
    return _RULES.get(name) or _refusal(__name__, {**globals(), **_RULES, **_TABLE})(name)


def __dir__() -> list[str]:
    """Returns all names, those of the tables too."""
    return sorted({*globals(), *_RULES, *_TABLE})
