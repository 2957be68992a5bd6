"""A certificate for tests that signs itself, of 127.0.0.1; it is valid until 2126."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "tls"
CERT, KEY = str(_FOLDER / "cert.pem"), str(_FOLDER / "key.pem")
ROLES = ("client", "scheduler", "worker")


def dask_settings(cert: str = CERT, key: str = KEY) -> dict[str, Any]:
    """Returns Dask's configuration of a cluster with TLS."""
    tls = "distributed.comm.tls"
    files = {f"{tls}.{role}.cert": cert for role in ROLES}
    files |= {f"{tls}.{role}.key": key for role in ROLES}
    return {f"{tls}.ca-file": cert, "distributed.comm.require-encryption": True, **files}
