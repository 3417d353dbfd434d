"""Build hook: a wheel ships the small chart bundle when it can be had.

An editable install needs nothing (the server reads the checkout). When the bundle cannot be fetched the wheel
is built without it, and the server uses the larger one of the `plotly` package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ChartBundleHook(BuildHookInterface[Any]):
    """Fetches frontend/static/vendor before the files are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch the bundle unless it is there or this is an editable install."""
        root = Path(self.root)
        is_there = (root / "frontend" / "static" / "vendor" / "plotly-cartesian.min.js").is_file()
        if version == "editable" or is_there:
            return
        command = [sys.executable, str(root / "scripts" / "fetch_plotly.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            self.app.display_warning(
                f"this wheel has no small chart bundle ({reason[0]}); pages will use the larger one of the "
                "plotly package. Run `python scripts/fetch_plotly.py` where plotly is installed, build again."
            )
