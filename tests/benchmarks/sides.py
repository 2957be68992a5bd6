"""The two sides of a comparison, as processes that do a piece of work when they are asked.

See peer.py for what they do. TensorFlow runs out of an environment of its own, which is made where
it is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TENSORFLOW = "tensorflow-cpu==2.21.0"


class Peer:
    """A process of peer.py."""

    def __init__(self, name: str, python: str, env: dict[str, str]) -> None:
        """Starts it and waits until its library is imported.

        Raises:
            RuntimeError: It did not start.
        """
        self.name = name
        script = Path(__file__).with_name("peer.py")
        # Libraries chat; what they say matters when they fail.
        self.stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(script), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            env=env,
        )
        self.answer()

    def answer(self) -> dict[str, Any]:
        """Returns the next answer.

        Raises:
            RuntimeError: The work failed, or the process has ended.
        """
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.stderr.seek(0)
            raise RuntimeError(f"{self.name} has ended: {self.stderr.read()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def measure(self, work: str, **args: Any) -> dict[str, float]:
        """Has the work done once; returns its figures by name."""
        return self._ask({"work": work, "args": args})

    def steps(self, work: str, args: dict[str, Any], slice_s: float) -> list[float]:
        """Has the work's step run for so long; returns the seconds of each step."""
        found: list[float] = self._ask({"work": work, "args": args, "slice_s": slice_s})["value"]
        return found

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.stderr.close()


def sources(env: dict[str, str]) -> dict[str, str]:
    """Returns the environment in which flowscope is the one of these sources."""
    folders = [str(ROOT / name) for name in ("engine", "kernel_ext", "widgets")]
    return {**env, "PYTHONPATH": os.pathsep.join(folders)}


def make_peer(folder: Path, env: dict[str, str]) -> Peer | None:
    """Starts TensorFlow out of its own environment, which is made where it is missing."""
    python = folder / "bin" / "python"
    name, _, version = TENSORFLOW.partition("==")
    check = f"import importlib.metadata as m; raise SystemExit(m.version({name!r}) != {version!r})"
    try:
        if (
            not python.exists()
            or subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode
        ):
            print(f"Setting up {folder} with {TENSORFLOW} ...", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, TENSORFLOW], check=True)
        return Peer("tensorflow", str(python), env)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"No TensorFlow to compare with: {error}", file=sys.stderr)
        return None


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
