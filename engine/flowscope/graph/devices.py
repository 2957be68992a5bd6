"""Device names: "/job:worker/replica:0/task:3/device:GPU:0", each part optional in a request."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.late import frozen


@frozen
class DeviceSpec:
    """A device, or a partial wish for one: parts that are None are left open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @staticmethod
    def from_string(text: str) -> DeviceSpec:
        """Returns the parsed `text`; raises InvalidArgumentError if it is no device name."""
        fields: dict[str, Any] = {}
        for part in filter(None, text.split("/")):
            key, *rest = part.split(":")
            try:
                if key in ("job", "replica", "task") and len(rest) == 1:
                    fields[key] = rest[0] if key == "job" else int(rest[0])
                    continue
                words = rest if key == "device" else [key, *rest]
                kind, index = words[0].upper(), words[1] if len(words) > 1 else "*"
                if kind in ("CPU", "GPU", "FAKE") or key == "device":
                    fields["device_type"] = None if kind == "*" else kind
                    fields["device_index"] = None if index == "*" else int(index)
                    continue
            except (ValueError, IndexError):
                pass
            raise InvalidArgumentError(
                f"{text!r} is no device name: {part!r} is not understood; "
                "expected parts like /job:worker, /task:1, /device:GPU:0 or /gpu:0"
            )
        return DeviceSpec(**fields)

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
        return "".join(parts)

    def merged(self, inner: DeviceSpec) -> DeviceSpec:
        """Returns this wish with the parts that `inner` sets put in their place."""
        ours, theirs = {**vars(self)}, vars(inner)
        if inner.device_type is not None:
            ours["device_index"] = None
        return DeviceSpec(**{k: ours[k] if v is None else v for k, v in theirs.items()})

    def allows(self, device: DeviceSpec) -> bool:
        """Whether the full name `device` fulfils this wish."""
        ours, theirs = vars(self).values(), vars(device).values()
        return all(a is None or a == b for a, b in zip(ours, theirs, strict=True))

    def __str__(self) -> str:
        return self.to_string()
