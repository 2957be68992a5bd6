"""Which parameter server a variable goes to: the least loaded one, or one by its name."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

training = fs.contrib.training
pytestmark = pytest.mark.usefixtures("graph")


def placed(strategy, shapes, tasks=2):
    """The tasks of variables of some shapes."""
    with fs.device(fs.train.replica_device_setter(ps_tasks=tasks, ps_strategy=strategy)):
        made = [fs.Variable(fs.zeros(shape), name=f"v{i}") for i, shape in enumerate(shapes)]
        total = made[0] + 1.0
    assert total.device == "/job:worker"
    for v in made:
        assert v.initializer.device == v.device
    return [int(v.device.rpartition(":")[2]) for v in made]


def test_equal_loads_take_turns():
    strategy = training.GreedyLoadBalancingStrategy(3, lambda op: 1)
    assert placed(strategy, [[2, 2], [2, 1], [2, 2], [1, 3]], 3) == [0, 1, 2, 0]


def test_bytes_go_to_the_least_loaded_task():
    strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    # 16 bytes; 8; 8 + 16; 16 + 12
    assert placed(strategy, [[2, 2], [2, 1], [2, 2], [1, 3]]) == [0, 1, 1, 0]


def test_the_most_loaded_task_has_at_most_the_mean_and_the_largest_variable():
    rng = np.random.default_rng(0)
    for tasks in (1, 2, 5):
        sizes = [int(n) for n in rng.integers(1, 50, 40)]
        strategy = training.GreedyLoadBalancingStrategy(tasks, training.byte_size_load_fn)
        found = placed(strategy, [[n] for n in sizes], tasks)
        loads = [sum(n for n, t in zip(sizes, found, strict=True) if t == k) for k in range(tasks)]
        assert sum(loads) == sum(sizes)
        assert max(loads) <= sum(sizes) / tasks + max(sizes)


def test_sizes_are_those_of_variables_and_of_single_outputs():
    assert training.byte_size_load_fn(fs.Variable(fs.zeros([3, 2], fs.float64)).op) == 48
    assert training.byte_size_load_fn(fs.constant([1, 2, 3]).op) == 12
    with pytest.raises(InvalidArgumentError, match="known shape"):
        training.byte_size_load_fn(fs.placeholder(fs.float32, [None, 2]).op)
    with pytest.raises(InvalidArgumentError, match="one output"):
        training.byte_size_load_fn(fs.split(fs.zeros([4]), 2)[0].op)


def test_names_alone_tell_the_task_at_random():
    shapes = [[1]] * 30
    found = placed(training.RandomStrategy(4, seed=1), shapes, 4)
    with fs.Graph().as_default():
        assert placed(training.RandomStrategy(4, seed=1), shapes, 4) == found
    with fs.Graph().as_default():
        assert placed(training.RandomStrategy(4, seed=2), shapes, 4) != found
    assert set(found) == {0, 1, 2, 3}


def test_what_is_no_strategy_is_refused_at_its_line():
    with pytest.raises(InvalidArgumentError, match="one task"):
        training.GreedyLoadBalancingStrategy(0, training.byte_size_load_fn)
    with pytest.raises(InvalidArgumentError, match="one task"):
        training.RandomStrategy(0)
    with pytest.raises(DTypeError, match="a function as load_fn"):
        training.GreedyLoadBalancingStrategy(2, 3)
    strategy = training.GreedyLoadBalancingStrategy(2, lambda op: -1)
    with pytest.raises(InvalidArgumentError, match=">= 0"):
        placed(strategy, [[1]])
