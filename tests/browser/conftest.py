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
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from jupyter_driver import TIMEOUT_MS, JupyterServer, Lab, launch
from live_host import LiveHost
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    ViewportSize,
    expect,
    sync_playwright,
)

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

OUTPUT = Path(__file__).parent / "output"
VIEWPORT: ViewportSize = {"width": 1400, "height": 900}
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


class LabPage:
    """The page in which JupyterLab stays loaded from test to test: to load it takes seconds."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None

    def take(self) -> Page:
        """The page, without what earlier tests have set; a new one where there is none."""
        if self._context is None:
            self._context = new_context(self._browser)
            return self._context.new_page()
        page = self._context.pages[0]
        page.set_viewport_size(VIEWPORT)
        return page

    def discard(self) -> None:
        """Has the next test load JupyterLab anew."""
        if self._context is not None:
            self._context.close()
            self._context = None


@pytest.fixture(scope="session")
def lab_page(browser: Browser) -> Iterator[LabPage]:
    """The page that tests with `lab` share, unless they are marked by `own_page`."""
    made = LabPage(browser)
    yield made
    made.discard()


def new_context(browser: Browser) -> BrowserContext:
    """A browser window without cookies and storage."""
    return browser.new_context(viewport=VIEWPORT)


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh browser window for one test; screenshot on failure.

    Tests with `lab` share one, in which JupyterLab is loaded already. Those that reload the page or
    rearrange JupyterLab have one of their own: `@pytest.mark.own_page`.
    """
    shared: LabPage | None = None
    if "lab" in request.fixturenames and not request.node.get_closest_marker("own_page"):
        shared = request.getfixturevalue("lab_page")
    with ExitStack() as stack:
        page = shared.take() if shared else stack.enter_context(new_context(browser)).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        console: list[str] = []
        with _noting(page, console):
            yield page
        report = request.node.stash.get(REPORT, {}).get("call")
        if report is None or not report.passed:
            if report is not None and report.failed:
                _keep(page, console, request)
            if shared:
                shared.discard()


@contextmanager
def _noting(page: Page, console: list[str]) -> Iterator[None]:
    """Notes what the page says while a test runs."""

    def on_message(message: ConsoleMessage) -> None:
        console.append(f"{message.type}: {message.text}")

    def on_error(error: Error) -> None:
        console.append(f"uncaught: {error}")

    page.on("console", on_message)
    page.on("pageerror", on_error)
    yield
    page.remove_listener("console", on_message)
    page.remove_listener("pageerror", on_error)


@pytest.fixture
def lab(page: Page, jupyter_server: JupyterServer) -> Iterator[Lab]:
    """JupyterLab for one test: opens notebooks, runs cells, runs commands; kernels end with it."""
    made = Lab(page, jupyter_server)
    yield made
    made.close_all()
    jupyter_server.shut_down_kernels()


@pytest.fixture
def static(root: Path) -> Path:
    """The folder of the built widget."""
    found = root / "widgets" / "flowscope_widgets" / "static"
    if not (found / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    return found


@pytest.fixture
def feed(graph: fs.Graph, session: fs.Session) -> LiveChannel:
    """What `host` shows: the `session` of the tests' module on the test's graph."""
    return LiveChannel(graph, session)


@pytest.fixture
def host(page: Page, static: Path, feed: LiveChannel) -> Iterator[LiveHost]:
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
