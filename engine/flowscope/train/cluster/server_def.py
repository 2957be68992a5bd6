"""`fs.train.ServerDef`: which task of which cluster a server is, as a message."""

from __future__ import annotations

from flowscope.graph.messages.message import Message
from flowscope.runtime.config import ClusterDef, ConfigProto

__all__ = ["ServerDef"]


class ServerDef(Message):
    """A task of a cluster, as `fs.train.Server` takes it.

    Attributes:
        cluster: The cluster.
        job_name, task_index: Which of its tasks it is.
        default_session_config: Says which devices the server has.
        protocol: "" or "grpc": how it is called in TensorFlow.
    """

    cluster: ClusterDef = ClusterDef()
    job_name: str = ""
    task_index: int = 0
    default_session_config: ConfigProto = ConfigProto()
    protocol: str = ""
