"""Files of events, which TensorBoard reads: records of serialized `Event`s."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flowscope.graph.messages.event_messages import Event
from flowscope.ops.input.records import RecordReader, record


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Event]:
    """Yields the events of a file; a record that is not complete yet ends it.

    Args:
        path: A file of events.

    Raises:
        DataLossError: if a record is damaged.
    """
    reader = RecordReader(path)
    try:
        while (found := reader.read(is_growing=True)) is not None:
            yield Event.FromString(found[0])
    finally:
        reader.close()


class EventFile:
    """A new file of events in a folder. Several threads may add to it.

    Args:
        folder: Where the file is made; so is the folder.
        max_queue: How many events wait at most before they are written.
        flush_secs: After how many seconds they are written in any case.
        suffix: What the file's name ends in.
    """

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str) -> None:
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._timer: threading.Timer | None = None
        self._file = _new_file(Path(folder), suffix)
        self.add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        self.flush()

    def add(self, event: Event) -> None:
        """Adds an event, which is written at once if as many wait as may."""
        data = record(event.SerializeToString())
        with self._lock:
            self._waiting.append(data)
            if len(self._waiting) >= self._max_queue or self._flush_secs <= 0:
                self._write()
            elif self._timer is None:
                self._timer = threading.Timer(self._flush_secs, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Writes what waits."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._file.write(b"".join(self._waiting))
            self._waiting.clear()
            self._file.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        with self._lock:
            if not self._file.closed:
                self._write()
                self._file.close()


def _new_file(folder: Path, suffix: str) -> Any:
    """Opens a new file whose name tells when, where and by which process it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time()):010d}.{platform.node()}.{os.getpid()}"
    number = 0
    while True:
        try:
            return open(folder / f"{name}.{number}{suffix}", "xb")
        except FileExistsError:
            number += 1


__all__ = ["EventFile", "summary_iterator"]
