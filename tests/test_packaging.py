"""What is shipped: the wheel has everything that the product reads, and the bare package disturbs nobody."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from specscope.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "specscope": "collectors/specscope",
    "specscope_collectors": "collectors/specscope_collectors",
    "specscope_probe": "collectors/specscope_probe",
    "specscope_server": "server/specscope_server",
    "specscope_server/_frontend": "frontend",
    "specscope_server/_migrations": "migrations",
}
"""Folder in the wheel: folder in the checkout."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    run([*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)])
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """Names of the files in the wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment into which the wheel alone went, with no index to take anything else from."""
    folder = tmp_path_factory.mktemp("bare")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(folder / "bin" / "python"),
    ]
    run([*pip, "install", "--no-index", "--no-cache-dir", str(wheel)])
    return folder


def run(command: list[str]) -> str:
    """Run a command that must succeed and return what it printed."""
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def specscope(bare: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command of the empty environment."""
    command = [str(bare / "bin" / "specscope"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=bare, check=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_committed_file_of_a_package_is_in_the_wheel(package: str, names: set[str]) -> None:
    source = PACKAGES[package]
    listed = subprocess.run(["git", "ls-files", source], cwd=ROOT, capture_output=True, text=True, check=True)
    committed = {
        name.replace(source, package, 1) for name in listed.stdout.split() if (ROOT / name).is_file()
    }
    assert committed
    assert committed <= names


def test_nothing_else_is_in_the_wheel(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        package for package in PACKAGES if "/" not in package
    }
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name or name.endswith(".pyc")]


def test_the_chart_library_of_the_checkout_is_in_the_wheel(names: set[str]) -> None:
    vendor = ROOT / "frontend" / "static" / "vendor"
    fetched = {path.name for path in vendor.glob("*.js")}
    shipped = {
        Path(name).name for name in names if name.startswith("specscope_server/_frontend/static/vendor/")
    }
    assert fetched <= shipped


def test_the_bare_package_needs_nothing(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    fields = Parser().parsestr(archive.read(metadata).decode("utf-8"))
    needs = fields.get_all("Requires-Dist", [])
    assert needs
    assert [need for need in needs if "extra ==" not in need] == []
    assert fields["License-Expression"] == "Apache-2.0"
    assert {"server", "postgres", "collectors"} <= set(fields.get_all("Provides-Extra", []))


def test_nothing_came_with_the_bare_package(bare: Path) -> None:
    installed = {path.name for path in bare.glob("lib/python3*/site-packages/*")}
    assert {name for name in installed if not name.startswith("specscope")} == set()


def test_the_bare_command_prints_its_usage(bare: Path) -> None:
    outcome = specscope(bare)
    assert outcome.returncode == 2
    assert outcome.stdout.startswith("usage: specscope COMMAND")
    assert re.search(r"^  serve ", outcome.stdout, re.MULTILINE)


def test_the_probe_needs_no_extra(bare: Path) -> None:
    outcome = specscope(bare, "probe", "check")
    assert outcome.returncode == 3
    assert "there is no SGLang in this environment" in outcome.stderr


@pytest.mark.parametrize("command", [name for name, (_, extra, _) in COMMANDS.items() if extra])
def test_a_command_whose_extra_is_missing_says_which(bare: Path, command: str) -> None:
    outcome = specscope(bare, command)
    assert outcome.returncode == 3, outcome.stderr
    assert f"pip install 'specscope[{COMMANDS[command][1]}]'" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_the_wheel_brings_its_own_migrations(wheel: Path, tmp_path: Path) -> None:
    unpacked, database = tmp_path / "unpacked", tmp_path / "specscope.db"
    zipfile.ZipFile(wheel).extractall(unpacked)
    command = [sys.executable, "-m", "specscope", "db", "upgrade", "--database", f"sqlite:///{database}"]
    environment = os.environ | {"PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    outcome = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    with sqlite3.connect(database) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"alembic_version", "server", "launch", "series", "sample"} <= tables
