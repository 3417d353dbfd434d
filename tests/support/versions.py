"""What the probe sees of the real classes of several SGLang versions; each is imported once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sglang_cpu import environment
from tests.sglang_cpu.environment import SGLANG_VERSION
from tests.sglang_cpu.install import Rig, RigMissingError
from tests.sglang_cpu.other_versions import OTHER_VERSIONS, ensure_version

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests/probe/each_version.py"
VERSIONS = (SGLANG_VERSION, *OTHER_VERSIONS)
WITHOUT_PLUGINS = "0.5.8"
WORKERS = [(version, "v2") for version in VERSIONS] + [("0.5.8", "v1")]
NAMES = ("COUNTS", "STATES", "SWITCHED_OFF")

Seen = Callable[[str], dict[str, Any]]


def paths(version: str, *folders: Path) -> str:
    """Return the ``PYTHONPATH`` of a process with that SGLang and these folders beside it."""
    try:
        own = [] if version == SGLANG_VERSION else [ensure_version(version)]
    except RigMissingError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"no SGLang {version}: {reason}")
        pytest.skip(f"no SGLang {version}: {reason}")
    return os.pathsep.join(map(str, [*own, *folders, environment.STUBS]))


def run(
    rig: Rig, version: str, folders: tuple[Path, ...], *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the rig's Python over that version."""
    variables = environment.serving_environment() | {"PYTHONPATH": paths(version, *folders)} | more
    command = [str(rig.python), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False, timeout=300)


@pytest.fixture(scope="session")
def seen_of(installed_rig: Rig, probe_site: Path) -> Seen:
    """What is seen in a version's classes, asked for once per version, by `NAMES`."""
    known: dict[str, dict[str, Any]] = {}

    def ask(version: str) -> dict[str, Any]:
        if version not in known:
            kinds = [kind for own, kind in WORKERS if own == version]
            # The driver stands in a package of tests, which must be found beside the installed package.
            folders = (probe_site, ROOT)
            outcome = run(installed_rig, version, folders, str(DRIVER), *kinds, SPECSCOPE_PROBE="1")
            lines = [line.partition(" ") for line in outcome.stdout.splitlines()]
            known[version] = {name: json.loads(told) for name, _, told in lines if name in NAMES}
            assert known[version].keys() >= {"COUNTS", "STATES"}, (
                outcome.stdout[-2000:] + outcome.stderr[-4000:]
            )
        return known[version]

    return ask
