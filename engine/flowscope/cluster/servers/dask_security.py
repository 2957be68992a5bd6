"""What Dask's configuration says of TLS: the servers of a `ClusterSpec` have it as Dask has."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Literal

import dask
from distributed import Security

from flowscope.errors import FailedPreconditionError

Role = Literal["client", "scheduler", "worker"]

_WHAT = {"ca_file": "certificate of the authority", "cert": "certificate", "key": "key"}


def configured_security(roles: Iterable[Role]) -> Security | None:
    """The TLS settings of Dask's configuration; None where it asks for none.

    It asks for TLS where `distributed.comm.require-encryption` is true, or where it names a
    certificate of an authority (`distributed.comm.tls.ca-file`).

    Args:
        roles: What this process is.

    Raises:
        FailedPreconditionError: if a certificate or a key is missing, or is none.
    """
    has_authority = dask.config.get("distributed.comm.tls.ca-file") is not None
    if not has_authority and not dask.config.get("distributed.comm.require-encryption"):
        return None
    security = Security(require_encryption=True)  # type: ignore[no-untyped-call]
    for role in roles:
        _check(security, role)
    return security


def _check(security: Security, role: Role) -> None:
    """Raises FailedPreconditionError unless a process can show who it is in a role."""
    told = security.get_tls_config_for_role(role)  # type: ignore[no-untyped-call]
    for field in ("ca_file", "cert"):
        if not told[field]:
            setting = "ca-file" if field == "ca_file" else f"{role}.cert"
            raise FailedPreconditionError(
                f"Dask's configuration asks for TLS, and names no {_WHAT[field]} of the {role}: "
                f"set distributed.comm.tls.{setting} to a file"
            )
    try:
        security.get_listen_args(role)  # type: ignore[no-untyped-call]
    except (OSError, ssl.SSLError) as e:
        names = ", ".join(repr(v) for k, v in told.items() if k in _WHAT and v and "\n" not in v)
        raise FailedPreconditionError(
            f"Dask's configuration asks for TLS, and the certificates of the {role} cannot be "
            f"read: {e}. Expected files in the PEM format, got {names or 'texts'}"
        ) from e


__all__ = ["Role", "configured_security"]
