"""A notebook in an IPython shell of this process, empty or with a model."""

import gc

import pytest
from shells import MODEL, SESSION, notebook_here


@pytest.fixture(scope="module")
def shell():
    with notebook_here() as notebook:
        yield notebook


@pytest.fixture
def notebook(shell):
    gc.collect()  # graphs of other tests, which cells of the same names would empty
    shell.ok("reset", "%reset -f\nimport flowscope as fs, numpy as np\nfs.reset_default_graph()")
    return shell


@pytest.fixture
def model(notebook):
    """A notebook with a model in cell "m" and a session in cell "s"; w is 2 everywhere."""
    notebook.ok("m", MODEL)
    notebook.ok("s", SESSION + "sess.run(w.assign(np.full([3, 2], 2.0)));")
    return notebook
