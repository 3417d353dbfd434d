"""Decision 0001: the bare package brings nothing and imports nothing."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from tests.docs.pages import ROOT

_PROBE = """
import sys
before = set(sys.modules)
import specscope.__main__
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - set(sys.stdlib_module_names) - {"specscope"}))
"""


def test_the_bare_package_has_no_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == []


def test_the_dispatcher_imports_only_the_standard_library() -> None:
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    assert probe.stdout.strip() == "[]"


def test_top_level_folders_are_not_packages() -> None:
    assert [
        name for name in ("server", "collectors", "frontend") if (ROOT / name / "__init__.py").exists()
    ] == []
