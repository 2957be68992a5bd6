"""A real JupyterLab in a real Chromium.

    def test_shows_a_sum(lab):
        notebook = lab.open("1 + 1")
        notebook.run(0)
        expect(notebook.output(0)).to_have_text("2")

`lab` is all that most tests need. Wait with Playwright's `expect`, which looks again until its time
is up, or with `Notebook.run`, which waits for the cell's number: never for a length of time. What
a failed test saw is in tests/browser/output: a screenshot, the browser's console, the server's log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_driver import TIMEOUT_MS, JupyterServer, Lab, launch
from live_host import LiveHost
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

import flowscope as fs
from flowscope.live.bus import Feed

OUTPUT = Path(__file__).parent / "output"
REPORT = pytest.StashKey[dict[str, pytest.TestReport]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keeps each phase's report, so that fixtures know at the end whether the test failed."""
    report = yield
    item.stash.setdefault(REPORT, {})[report.when] = report
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test in this folder belongs to the groups `browser` and `slow`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    """Playwright itself. While it runs, asyncio.run() does not work in this process."""
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    """One Chromium for all tests: the system's, else the one that Playwright has installed.

    Without any the tests are skipped, but not in CI: there it is an error.
    """
    browser = launch(playwright_driver)
    if browser is None:
        reason = "needs a browser: apt install chromium, or python -m playwright install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def jupyter_server(
    tmp_path_factory: pytest.TempPathFactory, root: Path, source_env: dict[str, str]
) -> Iterator[JupyterServer]:
    """One JupyterLab server for all tests, with settings and notebooks in a temporary folder.

    Its kernels import the packages of the source tree, and its front end has the extension that
    lies in widgets/flowscope_widgets/labextension, when that is built.
    """
    extension = root / "widgets" / "flowscope_widgets" / "labextension"
    server = JupyterServer(tmp_path_factory.mktemp("jupyter"), source_env, extension)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh browser window (no cookies, no storage) for one test; screenshot on failure."""
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        console: list[str] = []
        page.on("console", lambda message: console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: console.append(f"uncaught: {error}"))
        yield page
        report = request.node.stash.get(REPORT, {}).get("call")
        if report is not None and report.failed:
            _keep(page, console, request)


@pytest.fixture
def lab(page: Page, jupyter_server: JupyterServer) -> Iterator[Lab]:
    """JupyterLab for one test: opens notebooks, runs cells, runs commands; kernels end with it."""
    yield Lab(page, jupyter_server)
    jupyter_server.shut_down_kernels()


@pytest.fixture
def static(root: Path) -> Path:
    """The folder of the built widget."""
    found = root / "widgets" / "flowscope_widgets" / "static"
    if not (found / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    return found


@pytest.fixture
def feed(graph: fs.Graph, session: fs.Session) -> Feed:
    """What `host` shows: the `session` of the tests' module on the test's graph."""
    return Feed(graph, session)


@pytest.fixture
def host(page: Page, static: Path, feed: Feed) -> Iterator[LiveHost]:
    """A page that is to show the feed, without Jupyter; see `LiveHost.start`."""
    made = LiveHost(page, static, feed)
    yield made
    made.close()


@pytest.fixture
def open_host(page: Page, host: LiveHost) -> Callable[..., LiveHost]:
    """Shows the feed in a window: (its width, theme, whether the view fills it) -> the page."""

    def opened(width: int = 1280, theme: str = "light", fills: bool = False) -> LiveHost:
        page.set_viewport_size({"width": width, "height": 800})
        host.start(theme)
        if fills:
            page.evaluate("document.querySelector('.fs-view').style.height = '770px'")
        return host

    return opened


def _keep(page: Page, console: list[str], request: pytest.FixtureRequest) -> None:
    OUTPUT.mkdir(exist_ok=True)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in request.node.name)
    (OUTPUT / f"{name}.console.txt").write_text("\n".join(console) + "\n")
    if "jupyter_server" in request.fixturenames:
        server: JupyterServer = request.getfixturevalue("jupyter_server")
        (OUTPUT / f"{name}.server.txt").write_text(server.log_text())
    try:
        page.screenshot(path=OUTPUT / f"{name}.png")
    except Error as error:
        (OUTPUT / f"{name}.console.txt").write_text("\n".join([*console, str(error)]) + "\n")
