"""What control messages lead to, in a host: each part of the cluster registers its own kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowscope.cluster.host import Host


def register(host: Host) -> None:
    """Fills a host's handlers, before anybody can connect."""


__all__ = ["register"]
