"""What an op is, its class or a fact of it says: code does not compare names of op types."""

import ast
import pathlib

import pytest

ENGINE = pathlib.Path(__file__).parents[2] / "engine" / "flowscope"
#: Written forms know ops by name; views show and filter what such forms tell them.
FREE = ("graph/serialization", "live")


def compared_names(source):
    """Returns the lines on which the type of an op is compared with strings."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_type = any(map(_is_type_of_op, sides))
            texts = [c for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant)]
            if is_type and any(isinstance(c.value, str) for c in texts):
                found.append(node.lineno)
    return found


def _is_type_of_op(node):
    if not (isinstance(node, ast.Attribute) and node.attr == "type"):
        return False
    owner = node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name in ("op", "definition", "at", "node")


def files():
    for path in sorted(ENGINE.rglob("*.py")):
        name = path.relative_to(ENGINE).as_posix()
        if not name.startswith(FREE):
            yield pytest.param(path, id=name)


@pytest.mark.parametrize("path", [*files()])
def test_no_op_is_told_by_the_name_of_its_type(path):
    lines = compared_names(path.read_text("utf-8"))
    assert not lines, "expected isinstance(node.op, ...) or a fact of the op"


def test_the_comparisons_are_found():
    assert compared_names("a = node.op.type == 'Const'\nb = 'Add' != op.type") == [1, 2]
    assert compared_names("a = t.op.definition.type in ('Const', 'NoOp')") == [1]
    assert compared_names("a = op.type in KNOWN\nb = old.type == op.type\nc = x.kind == 'a'") == []
