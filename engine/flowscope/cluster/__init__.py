"""The same graph on many machines: Dask workers host devices, and a session runs steps on them.

    cluster = fs.cluster.connect(distributed.LocalCluster(n_workers=3))
    with fs.Session(cluster) as sess:
        ...

In: what the user has of Dask. Out: a `Cluster`, which `fs.Session` takes as its target. Dask is
loaded when somebody connects.
"""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.cluster.membership import Cluster as Cluster, connect as connect
from flowscope.cluster.tasks import DeviceInfo as DeviceInfo, Task as Task

__all__ = ["Cluster", "DeviceInfo", "Task", "connect"]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
