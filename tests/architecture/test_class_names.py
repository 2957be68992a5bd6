"""A class's name says what it is: few names stand for more than one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import flowscope

ROOT = Path(flowscope.__file__).parent

#: Names that TensorFlow, too, gives to an op and to a layer, an initializer, a data set or a value.
TENSORFLOW = {
    "Conv2D", "Conv3D", "FixedLengthRecordDataset", "Identity", "RandomNormal", "RandomUniform",
    "TFRecordDataset", "TextLineDataset", "TruncatedNormal",
}  # fmt: skip
#: How many other public names stand for more than one class, but for messages of views, which are
#: called as what they tell of. The number only falls.
LEFT = 0


def classes() -> dict[str, list[str]]:
    """The modules in which each name stands for a class, but for those of messages to views."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        if not (path.stem.endswith("schema") or path.match("cluster/watch/status.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(path.relative_to(ROOT).as_posix())
    return dict(found)


def test_a_name_stands_for_one_class() -> None:
    twice = {name: files for name, files in classes().items() if len(files) > 1}
    assert set(classes()) >= TENSORFLOW
    others = {name: files for name, files in twice.items() if name not in TENSORFLOW}
    assert len(others) <= LEFT, others
