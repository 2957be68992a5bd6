"""Drives JupyterLab: the server as a process, the front end through a page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Locator, Page, Playwright, expect

START_TIMEOUT_S = 120
TOKEN = "flowscope-tests"
TIMEOUT_MS = 45_000
#: What Playwright disables, as the last list is the one that counts; and two pages behind the
#: address bar, which nobody sees here: each window would load them in a process of its own.
FEATURES_OFF = (
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
)
CHROMIUM_ARGS = (
    "--disable-background-networking",
    "--disable-component-update",
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)

# No questions to the network, no cells that leave the page because they are scrolled out of view.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "flowscope/panel": {"opens": False},
}
#: What `make lab` sets besides.
WORKSHOP = Path(__file__).parents[2] / "tutorials" / ".jupyter"
ARGUMENTS = (
    "--no-browser",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port=0",
    f"--IdentityProvider.token={TOKEN}",
    "--LabApp.expose_app_in_browser=True",
    "--JupyterNotebookApp.expose_app_in_browser=True",
    "--LabApp.extension_manager=readonly",
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
)

#: Opens a notebook where JupyterLab is loaded already.
OPEN = """path => window.jupyterapp.commands.execute("docmanager:open", {path})"""
#: Closes notebooks and panels without a question, as they are.
CLOSE_ALL = """() => {
    for (const area of ["main", "down"]) {
        for (const widget of [...window.jupyterapp.shell.widgets(area)]) widget.dispose();
    }
}"""

KERNEL_IS_READY = """name => {
    const widget = window.jupyterapp?.shell.currentWidget;
    const context = widget?.context;
    const kernel = context?.sessionContext.session?.kernel;
    return context?.path === name && context.isReady && context.sessionContext.isReady
        && kernel?.connectionStatus === "connected" && kernel.status === "idle"
        && kernel.info.then(() => true);
}"""


def launch(driver: Playwright) -> Browser | None:
    """Starts Chromium: the system's, else the one that Playwright has installed; None without."""
    names = ("chromium", "chromium-browser", "google-chrome")
    system = next(filter(None, map(shutil.which, names)), None)
    if system is None and not Path(driver.chromium.executable_path).exists():
        return None
    args = [*CHROMIUM_ARGS, *(["--no-sandbox"] if _is_root() else [])]
    return driver.chromium.launch(executable_path=system, args=args)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


class JupyterServer:
    """A JupyterLab server in a process of its own, whose files all lie in one folder."""

    def __init__(
        self, folder: Path, env: dict[str, str], extension: Path, module: str = "jupyterlab"
    ) -> None:
        """Prepares the folder.

        Args:
            folder: An empty folder.
            env: The environment.
            extension: A built labextension, or a path that is not there.
            module: What is started: "jupyterlab" or "notebook".
        """
        self._module = module
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self.url = ""
        self._log: list[str] = []
        self._is_up = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        own = {
            "IPYTHONDIR": folder / "ipython",
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_CONFIG_PATH": WORKSHOP,
            "JUPYTER_DATA_DIR": folder / "data",
            "JUPYTER_PATH": folder / "share",
            "JUPYTER_RUNTIME_DIR": folder / "runtime",
            "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
        }
        self._env = {**env, **{name: str(path) for name, path in own.items()}}
        for name, values in SETTINGS.items():
            path = folder / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        if (extension / "package.json").is_file():
            (folder / "share" / "labextensions").mkdir(parents=True)
            (folder / "share" / "labextensions" / "flowscope").symlink_to(extension)

    def start(self) -> None:
        """Starts the server and waits until it listens.

        Raises:
            RuntimeError: It did not come up; the text has its log.
        """
        root = ["--ServerApp.allow_root=True"] if _is_root() else []
        command = [sys.executable, "-m", self._module, *ARGUMENTS, *root]
        self._process = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={self.notebooks}"],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read_log, daemon=True).start()
        if not self._is_up.wait(START_TIMEOUT_S) or not self.url or not self._answers():
            self.stop()
            raise RuntimeError("JupyterLab did not start:\n" + self.log_text())

    def _answers(self) -> bool:
        """Asks until the server answers: it prints its address a moment before it listens."""
        for _ in range(200):
            try:
                self.request("/api/status")
                return True
            except urllib.error.URLError:
                time.sleep(0.1)
        return False

    def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._log.append(line)
            address = re.search(r"(http://127\.0\.0\.1:\d+)/", line)
            if address and not self.url:
                self.url = address[1]
                self._is_up.set()
        self._is_up.set()

    def stop(self) -> None:
        """Ends the server and its kernels."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def log_text(self) -> str:
        """The server's output so far."""
        return "".join(self._log)

    def request(self, path: str, method: str = "GET") -> Any:
        """Asks the server's REST interface; returns the decoded JSON, None for an empty answer."""
        headers = {"Authorization": f"token {TOKEN}"}
        request = urllib.request.Request(self.url + path, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            body = response.read()
        return json.loads(body) if body else None

    def shut_down_kernels(self) -> None:
        """Ends every kernel, so that the next test finds an empty machine."""
        for session in self.request("/api/sessions"):
            self.request(f"/api/sessions/{session['id']}", "DELETE")


class Lab:
    """JupyterLab in one page."""

    _numbers = count(1)

    def __init__(self, page: Page, server: JupyterServer) -> None:
        """Takes an empty page and a running server."""
        self.page = page
        self.server = server

    def open(self, *sources: str, path: Path | None = None) -> Notebook:
        """Opens a notebook with these code cells, or a copy of a file; waits for its kernel."""
        number = next(self._numbers)
        name = f"test-{number}.ipynb"
        if path is None:
            cells = [nbformat.v4.new_code_cell(source) for source in sources]
            kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
            node = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        else:
            node = nbformat.read(path, as_version=4)
        nbformat.write(node, self.server.notebooks / name)
        if self.page.evaluate("() => window.jupyterapp !== undefined"):
            self.page.evaluate(OPEN, name)
        else:
            workspace = f"{self.server.url}/lab/workspaces/test-{number}"
            self.page.goto(f"{workspace}/tree/{name}?token={TOKEN}")
        notebook = Notebook(self.page, self.server.notebooks / name)
        notebook.wait_for_kernel()
        return notebook

    def close_all(self) -> None:
        """Closes what is open, so that JupyterLab can be used again; nothing is saved."""
        self.page.evaluate(CLOSE_ALL)

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Runs one of JupyterLab's commands, `docmanager:save` for one, and waits for its end."""
        self.page.evaluate(
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args); }",
            [name, args or {}],
        )

    def page_config(self) -> dict[str, Any]:
        """The configuration that the server hands the front end, e.g. `federated_extensions`."""
        text = self.page.locator("#jupyter-config-data").text_content()
        config: dict[str, Any] = json.loads(text or "{}")
        return config


class Notebook:
    """The notebook that is open in the page; cells are counted from 0."""

    def __init__(self, page: Page, path: Path) -> None:
        """Takes the page, and where the notebook's file is."""
        self.page = page
        self.path = path
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def wait_for_kernel(self) -> None:
        """Waits until the kernel has answered and is idle: what is sent before gets lost."""
        self.page.wait_for_function(KERNEL_IS_READY, arg=self.path.name)

    def cell(self, index: int) -> Locator:
        """Returns the cell as a whole."""
        return self.panel.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """Returns the cell's outputs, without their numbers: one element for each."""
        return self.cell(index).locator(".jp-OutputArea-output")

    def start(self, index: int) -> None:
        """Presses Shift+Enter in the cell, and returns while it runs."""
        editor = self.cell(index).locator(".cm-content")
        editor.click()
        editor.press("Shift+Enter")
        expect(self.prompt(index)).not_to_have_text("[ ]:")

    def run(self, index: int, timeout_ms: float | None = None) -> Locator:
        """Runs the cell to its end; returns its outputs.

        Raises:
            AssertionError: It is still running when the time is up, or it ended with an error.
        """
        self.start(index)
        self.expect_done(index, timeout_ms)
        mime = "[data-mime-type='application/vnd.jupyter.stderr']"
        errors = self.cell(index).locator(mime)
        traceback = errors.filter(has_text="Traceback (most recent call last)")
        assert traceback.count() == 0, traceback.first.inner_text()
        return self.output(index)

    def expect_done(self, index: int, timeout_ms: float | None = None) -> None:
        """Waits until the cell has run to its end, with or without an error."""
        expect(self.prompt(index)).to_have_text(re.compile(r"^\[\d+\]:$"), timeout=timeout_ms)

    def expect_running(self, index: int) -> None:
        """Waits until the cell shows that it is running."""
        expect(self.prompt(index)).to_have_text("[*]:")

    def prompt(self, index: int) -> Locator:
        """Returns the cell's number: `[ ]:` before its first run, `[*]:` while it runs."""
        return self.cell(index).locator(".jp-InputPrompt")

    def edit(self, index: int, source: str) -> None:
        """Replaces the cell's text."""
        editor = self.cell(index).locator(".cm-content")
        editor.click()
        editor.press("ControlOrMeta+a")
        editor.press("Delete")
        self.page.keyboard.insert_text(source)

    def interrupt(self) -> None:
        """Presses the stop button."""
        self.panel.get_by_role("button", name="Interrupt the kernel").click()
