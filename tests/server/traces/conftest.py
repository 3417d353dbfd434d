"""Traces as an engine wrote them, and ways to send them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import httpx
from tests.server.client import Web
from tests.server.seed import SERVER

RECORDED = (
    Path(__file__).parents[2] / "collectors" / "traces" / "fixtures" / "1795986432.4661407-TP-0.trace.json.gz"
)


def send(web: Web, content: bytes, kind: str = "application/gzip", **query: Any) -> httpx.Response:
    """Upload a trace."""
    named = {"server": SERVER, "file": "1-TP-0.trace.json.gz", **query}
    return web.request(
        "POST", "/api/v1/traces", params=named, content=content, headers={"content-type": kind}
    )


def tar_of(paths: list[Path]) -> bytes:
    """Return an archive of files, in a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in paths:
            tar.add(path, f"profile/{path.name}")
    return out.getvalue()
