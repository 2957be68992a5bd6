"""What is said where a program asks for a name that a package does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Parts of TensorFlow 1 that are not here, and what does their work.
ELSEWHERE: Mapping[str, str] = {
    "app": "call your main() yourself, and read arguments with argparse",
    "compat": "the names are TensorFlow 1's already",
    "contrib": "much of it is in fs.nn, fs.layers, fs.losses and fs.initializers",
    "data": "feed NumPy arrays, or fill an fs.FIFOQueue",
    "disable_v2_behavior": "not needed: graphs and sessions are all there is",
    "enable_eager_execution": "graphs and sessions are all there is",
    "estimator": "write the loop around Session.run yourself",
    "flags": "read arguments with argparse",
    "gfile": "use open(), os and pathlib",
    "keras": "layers are in fs.layers",
    "logging": "use Python's logging",
    "python_io": "use open() and pathlib",
    "summary": "fetch what is to be logged; fs.show() and fs.progress show a run while it lasts",
}


def refusal(module: str, namespace: Mapping[str, Any]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`: an error that says what to use in place of the name.

    Args:
        module: The module's name.
        namespace: What it has; the nearest names are looked for there.
    """

    def missing(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("_"):
            text += _advice(module, name, [n for n in namespace if not n.startswith("_")])
        raise AttributeError(text)

    return missing


def _advice(module: str, name: str, names: list[str]) -> str:
    if module == "flowscope" and name in ELSEWHERE:
        return f": {ELSEWHERE[name]}"
    import difflib  # at need: most programs never ask for what is not there

    near = difflib.get_close_matches(name, names, 1, 0.75)
    return f": did you mean {near[0]!r}?" if near else ""
