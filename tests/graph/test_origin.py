"""Lines of the user's code: found without a search, however long the code is."""

import gc
import linecache

import flowscope as fs
from flowscope.graph.origins import origin


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


NAMED = """
def weights(n):
    return fs.Variable(fs.zeros([n]))

class Model: pass
model, params = Model(), {}
w1 = weights(3)
model.w2 = (fs
    .identity(w1))
w3, (b3, _) = weights(2), (fs.zeros([2]), 1)
params["w4"]: object = fs.zeros([4])
h = fs.tanh(w1) * 2.0
h += 1.0
make = lambda: fs.zeros([5])
made = make()
print_me = [fs.ones([1])]
if (walrus := fs.ones([2])) is not None: pass
fs.zeros([6])
"""


def test_the_variable_that_a_line_assigns_is_read_from_its_source():
    linecache.cache["<named>"] = len(NAMED), None, NAMED.splitlines(keepends=True), "<named>"
    names = {"fs": fs}
    with fs.Graph().as_default() as graph:
        exec(compile(NAMED, "<named>", "exec"), names)
        by_variable: dict[str, list[str]] = {}
        for op in graph.get_operations():
            by_variable.setdefault(op.origin.variable, []).append(op.name)
    assert names["w1"].op.name in by_variable["w1"]
    assert names["model"].w2.op.name in by_variable["w2"]
    assert names["w3"].op.name in by_variable["w3"]
    assert names["b3"].op.name in by_variable["b3"]
    assert names["params"]["w4"].op.name in by_variable["w4"]
    assert names["h"].op.name in by_variable["h"]
    assert "Tanh" in by_variable[""], "a part of what the line assigns is not that"
    assert names["made"].op.name in by_variable["made"], "what a function returns is its caller's"
    assert names["walrus"].op.name in by_variable["walrus"]
    assert not any(name in by_variable for name in ("print_me", "make", "_"))
