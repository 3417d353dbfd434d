"""The generated pages are up to date, and each metric, setting, operation and command has its heading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlalchemy import create_engine
from tests.docs.pages import ROOT, headings, read

from specscope.__main__ import COMMANDS
from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.collect_tables import Options, Target
from specscope_collectors.discoveries import Discover, discovery_kinds
from specscope_collectors.jobs import job_kinds
from specscope_collectors.sources.sglang_metrics.table import ROWS
from specscope_server.alerts.rules.kinds import kinds
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.signals import signals
from specscope_server.app import create_app
from specscope_server.settings import SECRETS, Settings


def run_generator(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_generated_pages_are_up_to_date() -> None:
    found = run_generator(ROOT, "--check")
    assert (found.returncode, found.stderr) == (0, "")


def test_a_stale_page_is_named_and_then_written(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for script in (ROOT / "scripts").glob("docs*.py"):
        (tmp_path / "scripts" / script.name).write_bytes(script.read_bytes())
    stale = run_generator(tmp_path, "--check")
    assert stale.returncode == 1
    assert "docs/reference/metrics.md is out of date: run make docs" in stale.stderr
    assert run_generator(tmp_path).returncode == 0
    assert run_generator(tmp_path, "--check").returncode == 0


def test_an_unknown_argument_is_refused() -> None:
    assert run_generator(ROOT, "--chek").returncode == 2


def test_every_metric_has_its_heading_and_its_raw_names() -> None:
    page = read("docs/reference/metrics.md")
    assert set(CATALOGUE) - set(headings(page)) == set()
    names = {name for row in ROWS for name in row.names}
    assert {name for name in names if f"`sglang:{name}`" not in page} == set()


def test_every_setting_has_its_heading_variable_and_flag() -> None:
    page = read("docs/reference/settings.md")
    assert set(Settings.model_fields) - set(headings(page)) == set()
    for name, field in Settings.model_fields.items():
        assert field.description, f"setting {name} has no description"
        assert f"`SPECSCOPE_{name.upper()}`" in page
        assert (f"`--{name.replace('_', '-')}" in page) is (name not in SECRETS)


def test_every_operation_has_its_heading() -> None:
    paths = create_app(Settings.model_validate({}), engine=create_engine("sqlite://")).openapi()["paths"]
    wanted = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert wanted
    assert wanted - set(headings(read("docs/reference/api.md"))) == set()


def test_every_command_has_its_heading() -> None:
    found = headings(read("docs/reference/cli.md"))
    assert {f"specscope {name}" for name in COMMANDS} - set(found) == set()


def test_every_key_of_the_collectors_file_is_explained() -> None:
    page = read("docs/reference/collect-file.md")
    tables = {"[options]": Options, "[[target]]": Target, "[[discover]]": Discover}
    tables |= {f'[[discover]] kind = "{name}"': kind.config for name, kind in discovery_kinds().items()}
    tables |= {f"[[{name}]]": kind.config for name, kind in job_kinds().items()}
    assert set(tables) - set(headings(page)) == set()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if not row.rpartition(" | ")[2].strip(" |")] == []
    known = {row.split("`")[1] for row in rows}
    assert {name for kind in tables.values() for name in kind.__struct_fields__} - known == set()


def test_every_shipped_alert_rule_condition_and_signal_has_its_place() -> None:
    page = read("docs/reference/alert-rules.md")
    assert (set(pack()) | set(kinds())) - set(headings(page)) == set()
    own = [name for name in signals() if not name.startswith("metric:")]
    assert [name for name in own if f"| `{name}` |" not in page] == []
