"""Which operations are others now than they were: what plans and views ask."""

import flowscope as fs


def test_what_is_noted_of_edits_does_not_grow_with_re_runs(graph):
    sizes = []
    for _ in range(12):
        with graph.cell("a"):
            y = fs.placeholder(fs.float32, [], name="x")
            for _ in range(50):
                y = y + 1.0
        with graph.cell("b"):
            fs.exp(y) if len(sizes) % 2 else fs.tanh(y)
        sizes.append(len(graph._edited))
    assert max(sizes) <= len(graph)


def test_an_edit_of_before_is_told_though_one_of_a_re_run_is_forgotten(graph):
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, None, name="x")
    count = graph.edits
    x.set_shape([2])
    with graph.cell("a"):
        fs.placeholder(fs.float32, None, name="x").set_shape([2])
    assert graph.edited_since(count) == [x.op]
