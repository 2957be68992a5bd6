"""A graph on many machines. Users enter by `fs.cluster.connect`, sessions by `client.session`.

    cluster = fs.cluster.connect(distributed.LocalCluster(n_workers=3))
    with fs.Session(cluster) as sess:
        ...

In: what the user has of Dask. Out: a `Cluster`, which `fs.Session` takes as its target. Dask is
loaded when somebody connects.
"""

import typing as _typing
from importlib import import_module as _import_module

from flowscope.api.absent import refusal as _refusal
from flowscope.cluster.servers.connecting import connect as connect

__all__ = ["Cluster", "DeviceInfo", "Task", "connect"]

if _typing.TYPE_CHECKING:
    from flowscope.cluster.client.membership import Cluster as Cluster
    from flowscope.cluster.membership.tasks import DeviceInfo as DeviceInfo, Task as Task
else:
    #: What needs packages that come with Dask.
    _LATER = {
        "Cluster": "client.membership",
        "DeviceInfo": "membership.tasks",
        "Task": "membership.tasks",
    }
    _refuse = _refusal(__name__, dict.fromkeys(__all__))

    def __getattr__(name):
        """Loads a name that is used for the first time; refuses others."""
        if name not in _LATER:
            return _refuse(name)
        return getattr(_import_module(f"flowscope.cluster.{_LATER[name]}"), name)
