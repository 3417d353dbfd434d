"""Static files under URLs that hold a hash of the content, so that browsers may keep them for good.

All files of `frontend/static` share one hash (``/static/<hash>/js/main.js``): relative imports between ES
modules then stay inside it. The chart library has one of its own, because it changes far less often.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from specscope_server.kit.errors import NotFound
from specscope_server.kit.plotly_library import PLOTLY_FILE, frontend_folder, plotly_library

_IMMUTABLE = "public, max-age=31536000, immutable"
_BRIEF = "public, max-age=60"
_MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

router = APIRouter(include_in_schema=False)


def asset_url(path: str) -> str:
    """Return the address of a file of `frontend/static`, e.g. "css/base.css"."""
    return f"/static/{static_digest()}/{path}"


def static_digest() -> str:
    """Return the hash over all static files; computed anew when one of them changes."""
    root = frontend_folder() / "static"
    return _digest(root, tuple((str(path), path.stat().st_mtime_ns) for path in _own_files(root)))


def _own_files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and "vendor" not in path.relative_to(root).parts:
            yield path


@lru_cache(maxsize=4)
def _digest(root: Path, stamps: tuple[tuple[str, int], ...]) -> str:
    total = hashlib.sha256()
    for name, _ in stamps:
        total.update(str(Path(name).relative_to(root)).encode() + b"\0" + Path(name).read_bytes())
    return total.hexdigest()[:16]


@router.get("/static/{digest}/{path:path}")
def static_file(request: Request, digest: str, path: str) -> Response:
    """Return one static file; only an address with the current hash may be kept for long."""
    library = plotly_library()
    if path == PLOTLY_FILE:
        return _file(request, library.path, is_current=digest == library.digest)
    root = (frontend_folder() / "static").resolve()
    wanted = (root / path).resolve()
    if not (wanted.is_relative_to(root) and wanted.is_file()):
        raise NotFound(f"there is no static file {path[:100]!r}")
    return _file(request, wanted, is_current=digest == static_digest())


def _file(request: Request, path: Path, *, is_current: bool) -> Response:
    body, packed = _bytes(path, path.stat().st_mtime_ns)
    headers = {"Cache-Control": _IMMUTABLE if is_current else _BRIEF, "Vary": "Accept-Encoding"}
    media_type = _MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=media_type)
    return Response(body, headers=headers, media_type=media_type)


@lru_cache(maxsize=128)
def _bytes(path: Path, _mtime_ns: int) -> tuple[bytes, bytes | None]:
    """Return a file and its gzip form (None when that would not be smaller)."""
    body = path.read_bytes()
    packed = gzip.compress(body, 9, mtime=0)
    return body, packed if len(packed) < len(body) else None
