"""Device names: "/job:worker/replica:0/task:3/device:GPU:0", each part optional in a request."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from flowscope.errors import InvalidArgumentError

_PARTS = ("job", "replica", "task", "device_type", "device_index")
#: Device types that a name may give without "device:" before them, in any case.
_SHORT = ("CPU", "GPU", "FAKE")


class DeviceSpec:
    """A device, or a partial wish for one: parts that are None are left open.

    Args:
        job: Name of the job.
        replica: Number of the replica.
        task: Number of the task.
        device_type: E.g. "CPU" or "GPU".
        device_index: Number of the device among those of its type.

    Raises:
        InvalidArgumentError: if a number is none.
    """

    __slots__ = ("_device_index", "_device_type", "_replica", "_task", "job")

    def __init__(
        self,
        job: str | None = None,
        replica: Any = None,
        task: Any = None,
        device_type: str | None = None,
        device_index: Any = None,
    ) -> None:
        self.job = job or None
        self.replica = replica
        self.task = task
        self.device_type = device_type
        self.device_index = device_index

    @property
    def replica(self) -> int | None:
        """Number of the replica."""
        return self._replica

    @replica.setter
    def replica(self, replica: Any) -> None:
        self._replica = _number("replica", replica)

    @property
    def task(self) -> int | None:
        """Number of the task."""
        return self._task

    @task.setter
    def task(self, task: Any) -> None:
        self._task = _number("task", task)

    @property
    def device_type(self) -> str | None:
        """Type of the device, e.g. "GPU"."""
        return self._device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        is_short = device_type is not None and device_type.upper() in _SHORT
        self._device_type = (
            device_type.upper() if is_short and device_type else device_type
        ) or None

    @property
    def device_index(self) -> int | None:
        """Number of the device among those of its type."""
        return self._device_index

    @device_index.setter
    def device_index(self, device_index: Any) -> None:
        self._device_index = _number("device_index", device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Returns the parsed name `spec`; raises InvalidArgumentError if it is no device name."""
        return cls(**parsed(spec))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Sets all parts to what the name `spec` says, and returns the object itself."""
        for part, value in {**dict.fromkeys(_PARTS), **parsed(spec)}.items():
            setattr(self, part, value)
        return self

    def to_string(self) -> str:
        """Returns the name, with the parts that are set."""
        parts = [
            f"/{k}:{getattr(self, k)}"
            for k in ("job", "replica", "task")
            if getattr(self, k) is not None
        ]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        elif self.device_index is not None:
            parts.append(f"/device:*:{self.device_index}")
        return "".join(parts)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes over the parts that `dev` sets."""
        for part, value in dev.parts().items():
            if value is not None:
                setattr(self, part, value)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Returns this wish with the parts that `dev` sets put in their place."""
        theirs = {part: value for part, value in dev.parts().items() if value is not None}
        return self.replace(**theirs)

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Returns this wish with some parts set to other values, or to None."""
        return type(self)(**{**self.parts(), **kwargs})

    def parts(self) -> dict[str, Any]:
        """Returns the parts by name."""
        return {part: getattr(self, part) for part in _PARTS}

    def allows(self, device: DeviceSpec) -> bool:
        """Whether the full name `device` fulfils this wish."""
        ours, theirs = self.parts().values(), device.parts().values()
        return all(a is None or a == b for a, b in zip(ours, theirs, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSpec):
            return NotImplemented
        return self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash(tuple(self.parts().values()))

    def __repr__(self) -> str:
        return f"<DeviceSpec({', '.join(f'{k}={v}' for k, v in self.parts().items())})>"

    def __str__(self) -> str:
        return self.to_string()


def _number(part: str, value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"expected a number as {part}, got {value!r}") from None


@functools.lru_cache(256)
def parsed(text: str) -> Mapping[str, Any]:
    """Returns the parts that a device name gives; raises InvalidArgumentError if it is none."""
    fields: dict[str, Any] = {}
    for part in filter(None, text.split("/")):
        key, *rest = part.split(":")
        if key in ("job", "replica", "task") and len(rest) == 1:
            fields[key] = rest[0] if key == "job" else _index(rest[0], text, part)
        elif key == "device" and len(rest) == 2:
            _give_device(fields, rest[0], rest[1], text, part)
        elif key.upper() in _SHORT and len(rest) <= 1:
            _give_device(fields, key, rest[0] if rest else "*", text, part)
        else:
            raise _not_understood(text, part)
    return fields


def _give_device(fields: dict[str, Any], kind: str, index: str, text: str, part: str) -> None:
    if "device_type" in fields:
        raise InvalidArgumentError(f"{text!r} names two device types: one is expected")
    fields["device_type"] = None if kind == "*" else kind
    fields["device_index"] = None if index == "*" else _index(index, text, part)


def _index(number: str, text: str, part: str) -> int:
    if not number.removeprefix("-").isdigit():
        raise _not_understood(text, part)
    return int(number)


def _not_understood(text: str, part: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{text!r} is no device name: {part!r} is not understood; "
        "expected parts like /job:worker, /task:1, /device:GPU:0 or /gpu:0"
    )


@functools.lru_cache(1024)
def merged(outer: str, inner: str) -> str:
    """Returns the wish `outer` with the parts that `inner` sets put in their place, as names."""
    if not outer or not inner:
        return DeviceSpec.from_string(outer or inner).to_string()
    spec = DeviceSpec.from_string(outer).make_merged_spec(DeviceSpec.from_string(inner))
    return spec.to_string()


@functools.cache
def contradict(one: str, other: str) -> bool:
    """Whether no device has two names: both set a part of them, and to different values."""
    a, b = DeviceSpec.from_string(one), DeviceSpec.from_string(other)
    pairs = [(getattr(a, part), getattr(b, part)) for part in _PARTS]
    return any(x is not None and y is not None and x != y for x, y in pairs)
