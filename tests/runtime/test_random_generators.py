"""Random bits follow from a key and a counter alone."""

import threading

import numpy as np
import pytest

from flowscope.runtime.state.random_generators import philox


def as_words(numbers):
    return np.array(numbers, np.uint64)


def fresh(key, counter):
    return np.random.Generator(np.random.Philox(key=as_words(key), counter=as_words(counter)))


@pytest.mark.parametrize("key", [(0, 0), (1, 2), (2**64 - 1, 7)])
@pytest.mark.parametrize("counter", [(0, 0, 0, 0), (0, 0, 5, 2**63)])
def test_the_draws_are_those_of_a_new_generator(key, counter):
    philox((3, 4)).random(3, np.float32)  # leaves bits behind
    for draw in (
        lambda rng: rng.standard_normal(5, np.float32),
        lambda rng: rng.random(3, np.float32),
        lambda rng: rng.integers(0, 100, 7, np.int32),
        lambda rng: rng.standard_gamma(2.0, 4),
        lambda rng: rng.permutation(9),
    ):
        want = draw(fresh(list(key), counter))
        np.testing.assert_array_equal(draw(philox(key, counter)), want)


def test_negative_keys_count_modulo_64_bits():
    assert philox((-1, 5)).random() == philox((2**64 - 1, 5)).random()


def test_each_thread_has_its_own():
    mine, others = philox((1, 2)), []
    thread = threading.Thread(target=lambda: others.append(philox((5, 6))))
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert mine.random() == fresh([1, 2], (0, 0, 0, 0)).random()
