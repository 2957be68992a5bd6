"""Lines of the user's code: found without a search, however long the code is."""

import gc

import flowscope as fs
from flowscope.graph import origin


def build(source):
    code = compile(source, "<a long cell>", "exec")
    names = {"fs": fs, "x": fs.constant(1.0)}
    exec(code, names)
    return names


def test_the_line_is_found_in_long_code():
    lines = [f"y{i} = (x +\n x)" if i % 7 == 0 else f"y{i} = x * x" for i in range(500)]
    source = "\n".join(lines)
    names = build(source)
    text = source.split("\n")
    for i in range(500):
        line = names[f"y{i}"].op.origin.place.line
        assert text[line - 1].startswith(f"y{i} = ")


def test_what_is_known_of_lines_goes_with_the_code():
    gc.collect()
    before = len(origin._lines)
    with fs.Graph().as_default():
        names = build("y = x + x")
        assert names["y"].op.origin.place.line == 1
        assert len(origin._lines) > before
        del names
    gc.collect()
    assert len(origin._lines) <= before
