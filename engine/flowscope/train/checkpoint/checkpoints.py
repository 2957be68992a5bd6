"""Checkpoints in a folder: which there are, which is the latest, what is in them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from flowscope.errors import DataLossError, InvalidArgumentError, NotFoundError
from flowscope.graph.lazy import frozen
from flowscope.graph.messages.tensorflow_schema import message_class, parse_text, text_of
from flowscope.graph.serialization.files import read_file
from flowscope.graph.serialization.whole_files import replaced
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.state.checkpoint_file import CheckpointReader, file_of, index_of, is_bundle

_FORMAT, _VERSION = "flowscope-checkpoints", 1
_LATEST = "checkpoint"
#: How the file begins that TensorFlow writes.
_MESSAGE = re.compile(rb"\s*(model_checkpoint_path|all_model_checkpoint_\w+)\s*:")


@frozen
class CheckpointState:
    """What the file "checkpoint" of a folder says.

    Attributes:
        model_checkpoint_path: The latest checkpoint's prefix.
        all_model_checkpoint_paths: All that are kept, the oldest first.
        all_model_checkpoint_timestamps: When they were written, in seconds since 1970.
        last_preserved_timestamp: When the last one was written that is kept for good.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float | None = None


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes the file that says which checkpoint of a folder is the latest, whole or not at all.

    Where that one has TensorFlow's form, so has the file.

    Args:
        save_dir: The folder.
        model_checkpoint_path: The latest checkpoint's prefix.
        all_model_checkpoint_paths: All that are kept, the oldest first.
        latest_filename: Name of the file; "checkpoint" by default.
        all_model_checkpoint_timestamps: When they were written, in seconds since 1970.
        last_preserved_timestamp: When the last one was written that is kept for good.
        save_relative_paths: Whether paths are written relative to the folder, which can then be
            moved; paths inside a relative `save_dir` always are.

    Raises:
        InvalidArgumentError: if there are not as many times as paths.
        NotFoundError: if there is no such folder.
    """
    if not os.path.isdir(save_dir or "."):
        raise NotFoundError(f'expected a folder, there is no "{save_dir}"')
    paths = list(all_model_checkpoint_paths or [])
    times = list(all_model_checkpoint_timestamps or [])
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    if times and len(times) != len(paths):
        raise expected(f"{len(paths)} times, one per path", len(times))
    is_relative = save_relative_paths or not os.path.isabs(save_dir)

    def written(path: str) -> str:
        return os.path.relpath(path, save_dir) if is_relative else path

    facts = {
        "format": _FORMAT,
        "version": _VERSION,
        "model_checkpoint_path": written(model_checkpoint_path),
        "all_model_checkpoint_paths": [written(p) for p in paths],
        "all_model_checkpoint_timestamps": times,
        "last_preserved_timestamp": last_preserved_timestamp,
    }
    path = os.path.join(save_dir, latest_filename or _LATEST)
    text = _message(facts) if is_bundle(model_checkpoint_path) else json.dumps(facts, indent=1)
    with replaced(path) as file:
        file.write(text.encode())


def _message(facts: dict[str, Any]) -> str:
    """Returns the state as TensorFlow writes it, which finds its own checkpoints by it."""
    known = {k: v for k, v in facts.items() if k not in ("format", "version") and v is not None}
    return text_of(message_class("CheckpointState")(**known))


def get_checkpoint_state(
    checkpoint_dir: str, latest_filename: str | None = None
) -> CheckpointState | None:
    """The state in a folder's file "checkpoint", ours or TensorFlow's; None if there is none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: Name of the file; "checkpoint" by default.

    Raises:
        DataLossError: if the file cannot be understood.
    """
    folder = os.fsdecode(checkpoint_dir)
    path = os.path.join(folder, latest_filename or _LATEST)
    if not os.path.exists(path):
        return None
    try:
        data = read_file(path)
        facts = _from_message(data, path) if _MESSAGE.match(data) else json.loads(data)
    except (ValueError, RecursionError, NotFoundError) as e:
        raise DataLossError(f'"{path}" is damaged: {e}') from e
    return _state(facts, path, folder)


def _from_message(data: bytes, path: str) -> dict[str, Any]:
    """Returns the state that TensorFlow wrote, as ours is written."""
    found = parse_text("CheckpointState", data.decode(), f'"{path}"')
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "model_checkpoint_path": found.model_checkpoint_path,
        "all_model_checkpoint_paths": list(found.all_model_checkpoint_paths),
        "all_model_checkpoint_timestamps": list(found.all_model_checkpoint_timestamps),
        "last_preserved_timestamp": found.last_preserved_timestamp or None,
    }


def _state(facts: Any, path: str, folder: str) -> CheckpointState:
    match facts:
        case {
            "format": str(kind), "version": int(version), "model_checkpoint_path": latest,
            "all_model_checkpoint_paths": [*paths], "all_model_checkpoint_timestamps": [*times],
            "last_preserved_timestamp": last,
        } if (
            (kind, version) == (_FORMAT, _VERSION)
            and all(type(p) is str and "\0" not in p for p in (latest, *paths))
            and all(map(_is_time, (*times, *([] if last is None else [last]))))
            and len(times) in (0, len(paths))
        ):  # fmt: skip
            return CheckpointState(
                os.path.join(folder, latest),
                [os.path.join(folder, p) for p in paths],
                [float(t) for t in times],
                None if last is None else float(last),
            )
    raise DataLossError(f'"{path}" does not say what flowscope {_VERSION} writes there')


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Returns the prefix of a folder's latest checkpoint, None if there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return state.model_checkpoint_path


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of this prefix, ours or TensorFlow's."""
    return os.path.isfile(file_of(checkpoint_prefix)) or is_bundle(checkpoint_prefix)


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """Returns when the checkpoints that exist were written, in seconds since 1970."""
    found = [p for p in checkpoint_prefixes if checkpoint_exists(p)]
    paths = [index_of(p) if is_bundle(p) else file_of(p) for p in found]
    return [os.stat(path).st_mtime for path in paths]


def remove_checkpoint(checkpoint_prefix: str, meta_graph_suffix: str = "meta") -> None:
    """Deletes a checkpoint and the graph beside it; none is no error."""
    paths = [file_of(checkpoint_prefix), f"{checkpoint_prefix}.{meta_graph_suffix}"]
    if os.path.isfile(index_of(checkpoint_prefix)):
        paths += [index_of(checkpoint_prefix), *_shards(checkpoint_prefix)]
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _shards(prefix: str) -> list[str]:
    """The files with the bytes of a checkpoint in TensorFlow's form."""
    folder, name = os.path.split(prefix)
    shard = re.compile(re.escape(name) + r"\.data-\d{5}-of-\d{5}", re.ASCII)
    with os.scandir(folder or ".") as entries:
        return [os.path.join(folder, e.name) for e in entries if shard.fullmatch(e.name)]


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """Returns a reader of a checkpoint: a prefix, or a folder whose latest one is meant.

    Raises:
        NotFoundError: if there is no such checkpoint.
        InvalidArgumentError: if the folder has none.
        DataLossError: if it is damaged.
    """
    if not isinstance(ckpt_dir_or_file, str | bytes | os.PathLike):
        raise expected_dtype("a folder or a checkpoint's prefix", repr(ckpt_dir_or_file))
    path = os.fsdecode(ckpt_dir_or_file)
    if not os.path.isdir(path):
        return CheckpointReader(path)
    latest = latest_checkpoint(path)
    if latest is None:
        raise InvalidArgumentError(f'there is no checkpoint in "{path}"')
    return CheckpointReader(latest)


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """Returns the value of one variable in a checkpoint as an array."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Returns name and shape of all variables in a checkpoint, by name."""
    return list(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


#: TensorFlow's name of the reader.
NewCheckpointReader = CheckpointReader

__all__ = [
    "CheckpointReader",
    "CheckpointState",
    "NewCheckpointReader",
    "checkpoint_exists",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "remove_checkpoint",
    "update_checkpoint_state",
]
