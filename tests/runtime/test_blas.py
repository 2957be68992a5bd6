"""Sessions set the number of BLAS threads where they are asked to."""

import pytest

import flowscope as fs
from flowscope.runtime import blas


@pytest.fixture
def restored():
    before = blas.threads()
    yield
    blas.limit_threads(before)


def test_a_session_sets_the_number_of_threads(graph, restored):
    before = blas.threads()
    fs.Session()
    assert blas.threads() == before, "nobody asked"
    fs.Session(config=fs.ConfigProto(intra_op_parallelism_threads=1))
    assert blas.threads() == 1


def test_a_negative_number_is_refused(graph):
    with pytest.raises(ValueError, match="intra_op_parallelism_threads of 0"):
        fs.Session(config=fs.ConfigProto(intra_op_parallelism_threads=-1))
