"""Races: pairs of accesses to a variable that nothing but the order of the program orders."""

import re

import numpy as np
import pytest

import flowscope as fs
from flowscope.debugging import variable_races

pytestmark = pytest.mark.usefixtures("graph")


def pairs(fetches):
    return [(r.first.name, r.second.name) for r in variable_races(fetches)]


def test_a_read_and_a_write_without_a_path_race():
    v = fs.Variable(1.0, name="v")
    y = fs.identity(v * 2.0, name="y")
    up = v.assign_add(1.0, name="up")
    (race,) = variable_races([y, {"up": up}])
    assert (race.variable, race.first.name, race.second) == (v.op, "v/read", up.op)
    text = str(variable_races([y, up]))
    assert re.match(
        r'"v" is accessed by two operations that no path orders:\n'
        r'  reads  "v/read" \(ReadVariableOp\), made in test_races.py, line \d+\n'
        r'  writes "up" \(AssignAddVariableOp\), made in test_races.py, line \d+\n'
        r"they run in the order in which they were made; fs.control_dependencies",
        text,
    )
    assert repr(race) in text


def test_paths_of_tensors_and_control_inputs_order():
    v = fs.Variable(1.0, name="v")
    through_data = v.assign(v * 2.0, name="data")
    with fs.control_dependencies([through_data]):
        step = fs.no_op()
    with fs.control_dependencies([step]):
        through_control = v.assign_add(1.0, name="control")
        after = v.read_value()
    assert pairs([through_data, through_control]) == []
    assert pairs([after, through_control]) == [("control", "v/read_1")]
    assert str(variable_races(after)).startswith("no races")


def test_two_writes_race_and_two_reads_do_not():
    v, w = fs.Variable([1.0], name="v"), fs.Variable([1.0], name="w")
    a = v.assign_add([1.0], name="a")
    b = v.scatter_sub(fs.IndexedSlices(np.ones(1, np.float32), [0]), name="b")
    assert pairs([a, b, w.assign([2.0])]) == [("a", "b")]
    assert pairs([v.read_value(), v.read_value(), w]) == []


def test_only_what_the_fetches_need_counts():
    v = fs.Variable(1.0, name="v")
    v.assign(2.0)
    assert pairs(v + 1.0) == []
    assert pairs("v/Assign") == []


def test_a_path_counts_also_where_a_later_operation_comes_first(graph):
    v = fs.Variable(1.0, name="v")
    read = v.read_value()
    write = v.assign(2.0)
    graph.add_control_input(read.op, write.op)
    assert pairs([read, write]) == []


def test_training_has_no_races_but_a_look_at_its_variables_has():
    v = fs.Variable([1.0, 2.0], name="v")
    loss = fs.reduce_sum(v * v)
    step = fs.train.get_or_create_global_step()
    train = fs.train.AdamOptimizer(0.1).minimize(loss, step)
    assert pairs([train, loss]) == []
    look = v.read_value()
    assert [r.second for r in variable_races([train, look])] == [look.op]


def test_a_long_chain_is_no_matter():
    v = fs.Variable(1.0, name="v")
    x = v.value()
    for _ in range(5000):
        x = x + 1.0
    assert pairs(v.assign(x)) == []


def test_what_is_no_fetch_is_refused():
    with pytest.raises(TypeError, match="expected a tensor, an operation, a variable or a name"):
        variable_races([3])
    with pytest.raises(KeyError, match="no operation is named"):
        variable_races("nothing")
