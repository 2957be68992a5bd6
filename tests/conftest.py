"""What all tests share: hypothesis' settings, paths, a graph and sessions on it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from verified_plans import verify_all_plans

ROOT = Path(__file__).resolve().parents[1]

# The same examples in every run of CI; elsewhere new ones each time. Times vary on shared machines.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# A job in the background starts with interrupts ignored: tests that interrupt a step would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def source_env() -> dict[str, str]:
    """An environment for fresh interpreters, in which the packages come from the source tree."""
    folders = [str(ROOT / name) for name in ("engine", "kernel_ext", "widgets")]
    path = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests of memory first and tests in a browser last.

    What is measured is the whole process: no thread of an earlier test, like those of a Dask
    scheduler, may be in it. Behind the browser tests Playwright keeps asyncio's loop to itself.
    """

    def when(item: pytest.Item) -> int:
        return bool(item.get_closest_marker("browser")) - bool(item.get_closest_marker("memory"))

    items.sort(key=when)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spares the garbage collector, and tests that call it, the walk over thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def verified_plans() -> Iterator[None]:
    """Behind every pass the verifier looks at the program, for all plans that tests make."""
    with pytest.MonkeyPatch.context() as patch:
        verify_all_plans(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def native_code() -> None:
    """Native code is compiled before the first test: none is beside one that measures memory."""
    from flowscope.runtime.session import engine
    from flowscope.runtime.trace.native_stamps import stamper

    engine.current().pool.products.compile()
    stamper()


@pytest.fixture(autouse=True)
def open_default_graph() -> Iterator[None]:
    """Whatever a test does to the default graph, the next one can build in it."""
    yield
    import flowscope as fs

    if fs.get_default_graph().finalized:
        fs.reset_default_graph()


@pytest.fixture
def graph() -> Iterator[Any]:
    """A new graph, the default one during the test."""
    import flowscope as fs

    with fs.Graph().as_default() as g:
        yield g


@pytest.fixture(params=["compiled", "op"])
def sess(request: pytest.FixtureRequest, graph: Any) -> Iterator[Any]:
    """A session on `graph`, once for each way to run."""
    import flowscope as fs

    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s
