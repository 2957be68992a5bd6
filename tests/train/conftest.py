"""What the tests of savers share."""

import pytest

import flowscope as fs


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model")


@pytest.fixture
def initialized():
    """Returns a session in which all variables have their initial values."""

    def make(*fetches):
        sess = fs.Session()
        sess.run([fs.global_variables_initializer(), *fetches])
        return sess

    return make
