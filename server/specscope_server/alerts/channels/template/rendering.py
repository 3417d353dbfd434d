"""Render a template that is not trusted: sandboxed, and in a process of its own with limits.

Jinja's sandbox keeps a template from this process's objects, but not from `{% for %}` in `{% for %}` or a
string of a gigabyte: time and memory are bounded by the operating system, and the process knows no secret.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specscope_server.kit.errors import InvalidInput

CHILD = Path(__file__).with_name("child.py")
MAX_OUTPUT_BYTES = 65_536
SECONDS = 1
"""Of processor time."""
WALL_SECONDS = 10.0
MEMORY_BYTES = 512 * 1024 * 1024


def rendered(template: str, known: Mapping[str, Any]) -> bytes:
    """Return the text, UTF-8. Raises `InvalidInput`."""
    order = {"template": template, "known": known, "most": MAX_OUTPUT_BYTES}
    order |= {"seconds": SECONDS, "memory": MEMORY_BYTES, "path": [entry for entry in sys.path if entry]}
    try:
        # The interpreter and the file are ours; only data is handed over.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", str(CHILD)], input=json.dumps(order).encode(), capture_output=True,
            timeout=WALL_SECONDS, check=False, env={},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"the template took more than {WALL_SECONDS:.0f} s; make it simpler") from None
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 1 and done.stderr.startswith(b"template: "):
        raise InvalidInput(f"the {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
    raise InvalidInput(
        f"the template was stopped: it needs more than {SECONDS} s or {MEMORY_BYTES >> 20} MiB; "
        "make it simpler"
    )
