"""What printing writes, and where."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest

import flowscope as fs

#: (data of Print, its line), as TensorFlow writes them.
LINES = [
    ([range(10), [[1, 2], [3, 4]], "x", [True]], 3, "[0 1 2...][[1 2][3...]...][x][1]"),
    ([np.arange(24.0).reshape(2, 3, 4), 1.5, 1e-10], 5, "[[[0 1 2 3][4...]]...][1.5][1e-10]"),
    ([[[0, 1], [2, 3]], 1e10, 0.1], -1, "[[0 1][2 3]][1e+10][0.1]"),
    ([np.float32(1 / 3), np.zeros(0)], 9, "[0.333333343][]"),
    ([[np.nan, np.inf, -np.inf], np.float16(0.1)], 9, "[nan inf -inf][0.0999755859]"),
    ([np.complex64(1 + 2j)], 9, "[(1,2)]"),
]


@pytest.mark.parametrize(("data", "summarize", "line"), LINES)
def test_print_identity(sess, capfd, data, summarize, line):
    values = [list(d) if isinstance(d, range) else d for d in data]
    x = fs.constant([1.0, 2.0])
    y = fs.Print(x, values, "msg: ", summarize=summarize)
    np.testing.assert_array_equal(sess.run(y), [1, 2])
    assert capfd.readouterr().err == f"msg: {line}\n"


def test_a_print_that_nobody_reads_does_not_run(sess, capfd):
    x = fs.constant(1.0)
    fs.Print(x, [x])
    sess.run(x + 1.0)
    assert capfd.readouterr().err == ""


def test_a_fed_text_is_printed(sess, capfd):
    t = fs.placeholder(fs.string, [None])
    sess.run(fs.Print(1, [t]), {t: ["a", "b"]})
    assert capfd.readouterr().err == "[a b]\n"


def test_the_first_prints_are_counted_by_each_session(graph, capfd):
    x = fs.placeholder(fs.int32, [])
    y = fs.Print(x, [x], first_n=2)
    for _ in range(2):
        with fs.Session() as sess:
            for i in range(4):
                assert sess.run(y, {x: i}) == i
        assert capfd.readouterr().err == "[0]\n[1]\n"
    fs.Print(x, [x], first_n=-1)


def test_a_gradient_passes_a_print(sess):
    x = fs.placeholder_with_default(3.0, [])
    for y in (fs.Print(x, [x]), fs.Print(x, [x], first_n=0)):
        assert sess.run(fs.gradients(y * y, [x]))[0] == 6


def test_print(sess, capfd):
    values = "a", fs.range(10), {"k": fs.constant(1)}, [fs.constant(2), 3], 1.5
    sess.run(fs.print(*values, sep="|", end="!\n"))
    assert capfd.readouterr().err == "a|[0 1 2 ... 7 8 9]|{'k': 1}|[2, 3]|1.5!\n"


def test_print_to_standard_output(sess, capsys):
    x = fs.reshape(fs.range(16), [4, 4])
    sess.run(fs.print(x, fs.constant(["s"]), fs.constant("t"), fs.constant(True), fs.zeros([0]),
                      output_stream=sys.stdout, summarize=1))  # fmt: skip
    out = capsys.readouterr().out
    assert out == '[[0 ... 3]\n ...\n [12 ... 15]] ["s"] "t" 1 []\n'


def test_print_rows_of_rows(sess, capfd):
    sess.run(fs.print(fs.reshape(fs.range(8), [2, 2, 2])))
    assert capfd.readouterr().err == "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n"
    sess.run(fs.print(fs.range(10), summarize=-1))
    assert capfd.readouterr().err == "[0 1 2 3 4 5 6 7 8 9]\n"


def test_print_without_tensors(sess, capfd):
    sess.run(fs.print("only", "text"))
    assert capfd.readouterr().err == "only text\n"


def test_print_into_a_file_and_a_log(sess, tmp_path, caplog):
    path = tmp_path / "out.txt"
    op = fs.print(fs.constant(1), output_stream=f"file://{path}")
    sess.run(op)
    sess.run(op)
    assert path.read_text() == "1\n1\n"
    with caplog.at_level(logging.INFO, "flowscope"):
        sess.run(fs.print("hello", output_stream=logging.info))
    assert caplog.messages == ["hello"]
    with pytest.raises(TypeError, match="output_stream"):
        fs.print("x", output_stream=3)
    with pytest.raises(ValueError, match="got colour"):
        fs.print("x", colour="red")
