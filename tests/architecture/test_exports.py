"""Families are loaded when they are first used, and nobody sees a difference."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import flowscope as fs
from flowscope.api import exports
from flowscope.graph import providers
from flowscope.graph.op import all_ops


def in_fresh_interpreter(code: str, env: dict[str, str]) -> str:
    text = f"import sys\nimport flowscope as fs\n{code}"
    run = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.slow
def test_written_files_are_true() -> None:
    folder = Path(str(fs.__file__)).parent
    advice = "run `python -m flowscope.api.exports`"
    wrong = [n for n, text in exports.texts().items() if (folder / n).read_text() != text]
    assert wrong == [], advice


def test_public_names() -> None:
    assert set(fs.__all__) <= set(dir(fs))
    assert [name for name in fs.__all__ if not hasattr(fs, name)] == []


def test_all_op_types_are_found() -> None:
    built_in = {n for n, op in all_ops().items() if op.__module__.startswith("flowscope.")}
    assert providers.op_types.keys() == built_in


@pytest.mark.parametrize("part", exports.PARTS)
def test_parts_say_what_is_not_there(part: str) -> None:
    module = getattr(fs, part)
    with pytest.raises(AttributeError, match=f"module 'flowscope.{part}' has no attribute"):
        _ = module.not_there


@pytest.mark.slow
def test_import_loads_no_family(source_env: dict[str, str]) -> None:
    code = "print(*sorted(m for m in sys.modules if m.startswith(('flowscope', 'numpy'))))"
    assert in_fresh_interpreter(code, source_env).split() == [
        "flowscope",
        "flowscope.api",
        "flowscope.api.absent",
        "flowscope.api.public_names",
        "flowscope.graph",
        "flowscope.graph.providers",
    ]


X = "x = fs.constant([[1.0, 2.0]])\n"
NEEDS = {
    "from flowscope import nn; print(nn.relu.__name__)": "relu",
    "import flowscope.linalg; print(fs.linalg.det.__name__)": "matrix_determinant",
    "from flowscope import *; sys.stdout.write(matmul.__name__)": "matmul",
    X + "print((x @ fs.transpose(x)).op.type)": "MatMul",
    X + "print((x[0] + 1.0).op.type)": "Add",
    X + "print(fs.convert_to_tensor([x, x]).op.type)": "Pack",
    X + "print((x > 1.0).op.type)": "Greater",
    X + "print((x @ fs.transpose(x)).eval(session=fs.Session()))": "[[5.]]",
    "from flowscope.graph.op import op_class; print(op_class('Cholesky').__name__)": "Cholesky",
    X + "print(x.graph.create_op('Exp', [x]).type)": "Exp",
    X + "s = fs.IndexedSlices(x, fs.constant([1]), fs.constant([2, 2]))\n"
    "print(fs.convert_to_tensor(s).shape)": "(2, 2)",
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "shown"), NEEDS.items())
def test_what_is_needed_is_loaded(code: str, shown: str, source_env: dict[str, str]) -> None:
    assert in_fresh_interpreter(code, source_env) == shown


@pytest.mark.slow
def test_sparse_operators_need_no_other_import(source_env: dict[str, str]) -> None:
    code = """
from flowscope.ops.sparse.sparse_tensor import SparseTensor
s = SparseTensor([[0, 1]], [2.0], [1, 2])
dense = fs.constant([[3.0, 4.0]])
with fs.Session() as session:
    print([session.run(t).values.item() for t in (s * dense, dense * s, s / dense, -s)])
"""
    assert in_fresh_interpreter(code, source_env) == "[8.0, 8.0, 0.5, -2.0]"


@pytest.mark.slow
def test_files_are_read_whatever_is_loaded(tmp_path: Path, source_env: dict[str, str]) -> None:
    graph = fs.Graph()
    with graph.as_default():
        x = fs.constant([[4.0]], name="x")
        chol = fs.cholesky(x)
        got = fs.cond(fs.reduce_all(x > 0.0), lambda: fs.identity(chol), lambda: fs.negative(x))
        fs.identity(got, name="result")
        sparse = fs.SparseTensor([[0, 1]], [2.0], [1, 2])
        fs.add_to_collection("sparse", sparse)
        fs.Variable(1.0, name="v")
    path = tmp_path / "graph.json"
    fs.train.export_meta_graph(str(path), graph=graph)
    code = f"""
fs.train.import_meta_graph({str(path)!r})
print(type(fs.get_collection("sparse")[0]).__name__, len(fs.get_collection("variables")))
"""
    assert in_fresh_interpreter(code, source_env) == "SparseTensor 1"
    fs.io.write_graph(graph, str(tmp_path), path.name, as_text=False)
    code = f"""
from flowscope.io import read_graph
fs.import_graph_def(read_graph({str(path)!r}), name="")
print(fs.Session().run("result:0"))
"""
    assert in_fresh_interpreter(code, source_env) == "[[2.]]"


@pytest.mark.slow
def test_op_types_not_loaded_yet_are_taken(source_env: dict[str, str]) -> None:
    code = """
try:
    class Cholesky(fs.Op):
        "Another one."
except fs.errors.AlreadyExistsError as e:
    print(e)
try:
    fs.no_gradient("Cholesky")
except KeyError as e:
    print(e)
print(fs.cholesky(fs.constant([[4.0]])).op.type)
"""
    first, second, third = in_fresh_interpreter(code, source_env).splitlines()
    assert "there is an op named Cholesky already" in first
    assert "there is a gradient named 'Cholesky' already" in second
    assert third == "Cholesky"


@pytest.mark.slow
def test_a_first_step_loads_a_bounded_number_of_modules(source_env: dict[str, str]) -> None:
    code = (
        "import numpy; before = set(sys.modules)\n"
        "x = fs.placeholder(fs.float32, []); fs.Session().run(x + 1.0, {x: 1.0})\n"
        "new = sys.modules.keys() - before\n"
        "print(len([m for m in new if m.startswith('flowscope')]), *new)"
    )
    count, *new = in_fresh_interpreter(code, source_env).split()
    assert int(count) <= 243, "what a first step does not need loads later"
    late = {
        "IPython",
        "asyncio",
        "distributed",
        "inspect",
        "linecache",
        "pathlib",
        "queue",
        "scipy",
    }
    assert not late & set(new)


@pytest.mark.slow
def test_a_part_loads_what_is_used_of_it(source_env: dict[str, str]) -> None:
    code = (
        "fs.nn.relu, fs.math.special.dawsn\n"
        "print('flowscope.ops.nn.convolution' in sys.modules, 'flowscope.rnn' in sys.modules, "
        "fs.nn.rnn_cell.__name__, 'conv2d' in dir(fs.nn), 'conv2d' in vars(fs.nn))"
    )
    expected = "False False flowscope.rnn.rnn_cell True False"
    assert in_fresh_interpreter(code, source_env) == expected


@pytest.mark.parametrize("part", ["", *exports.LAZY_PARTS])
def test_stubs_show_each_name_to_type_checkers(part: str) -> None:
    module = getattr(fs, part) if part else fs
    text = exports.part_stub(part) if part else exports.stub()
    shown = ast.literal_eval(text[text.index("__all__ = ") + 10 :].partition("]")[0] + "]")
    assert shown == sorted(module.__all__)
    assert [name for name in shown if not hasattr(module, name)] == []
