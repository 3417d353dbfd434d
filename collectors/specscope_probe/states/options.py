"""What can be set of state profiles, all through environment variables."""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from specscope_probe.options import read_number

log = logging.getLogger("specscope_probe")

MAX_TOKEN_IDS = 128
MAX_TOKEN_FILE_BYTES = 1_000_000
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class StateOptions:
    """Settings of the part that profiles states. It is on when there is a folder to put profiles into."""

    spool: Path | None = None
    server: str = ""
    """URL of a server that profiles are pushed to; "" = they wait in the spool."""
    server_name: str = ""
    """What the watched engine is called there."""
    token_file: Path | None = None
    token_ids: tuple[int, ...] = ()
    """Token ids to keep directions of; none: the commonest are found."""
    is_calibrating: bool = False
    is_replaying: bool = False
    """Keep whole rows of requests that ask for it by their id."""
    verify_every: int = 200
    """Sample every k-th verify forward."""
    prefill_every: int = 20
    """Sample every k-th prefill forward."""
    rows: int = 64
    """Most rows of one sampled forward."""
    window_seconds: float = 600.0
    first_window_seconds: float = 60.0
    spool_bytes: int = 256 * MEBIBYTE

    @property
    def is_on(self) -> bool:
        """Whether profiles have somewhere to go."""
        return self.spool is not None


def read_state_options(environment: Mapping[str, str] = os.environ) -> StateOptions:
    """Return the settings; what cannot be understood is logged and the default taken."""
    default = StateOptions()
    prefix = "SPECSCOPE_PROBE_STATES_"

    def number(name: str, value: float, least: float, most: float) -> float:
        return read_number(environment, prefix + name, value, least, most)

    server, server_name = _server(environment)
    spool = _path(environment, "SPECSCOPE_SPOOL")
    return StateOptions(
        spool=spool or (_own_spool() if server else None),
        server=server,
        server_name=server_name,
        token_file=_path(environment, "SPECSCOPE_PROBE_TOKEN_FILE"),
        token_ids=_token_ids(_path(environment, "SPECSCOPE_PROBE_TOKEN_IDS")),
        is_calibrating=environment.get("SPECSCOPE_PROBE_CALIBRATE", "").strip() == "1",
        is_replaying=environment.get("SPECSCOPE_PROBE_REPLAY", "").strip() == "1",
        verify_every=int(number("VERIFY_EVERY", default.verify_every, 1, 1e6)),
        prefill_every=int(number("PREFILL_EVERY", default.prefill_every, 1, 1e6)),
        rows=int(number("ROWS", default.rows, 8, 4096)),
        window_seconds=number("WINDOW_SECONDS", default.window_seconds, 0.1, 86_400.0),
        first_window_seconds=number("FIRST_WINDOW_SECONDS", default.first_window_seconds, 0.1, 86_400.0),
        spool_bytes=MEBIBYTE * int(number("SPOOL_MEBIBYTES", default.spool_bytes / MEBIBYTE, 1, 1e6)),
    )


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return Path(text) if text else None


def _own_spool() -> Path | None:
    """Return where profiles wait when only a server is named; None: somebody else could write there."""
    folder = Path(tempfile.gettempdir()) / f"specscope-probe-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        log.warning("specscope: state profiles are not pushed: %s; set SPECSCOPE_SPOOL", error)
        return None
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    log.warning(
        "specscope: state profiles are not pushed: %s is somebody else's; set SPECSCOPE_SPOOL", folder
    )
    return None


def _server(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return URL and name; "" and "" when they are not given, or nothing can be pushed by them."""
    url = environment.get("SPECSCOPE_PROBE_SERVER", "").strip()
    name = environment.get("SPECSCOPE_PROBE_SERVER_NAME", "").strip()
    if not url:
        return "", ""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or "@" in url or "?" in url or "#" in url:
        reason = "SPECSCOPE_PROBE_SERVER is not https://HOST[:PORT]"
    elif not name or not name.isprintable():
        reason = "SPECSCOPE_PROBE_SERVER_NAME must be what this engine is called on that server"
    else:
        return url, name
    log.warning("specscope: state profiles are not pushed: %s", reason)
    return "", ""


def _token_ids(path: Path | None) -> tuple[int, ...]:
    """Return the ids of a file: a JSON list of integers; () when there is none or it cannot be read."""
    if path is None:
        return ()
    try:
        if path.stat().st_size > MAX_TOKEN_FILE_BYTES:
            raise ValueError(f"it has over {MAX_TOKEN_FILE_BYTES} bytes")
        ids = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(ids, list) or not all(type(token) is int and 0 <= token < 2**31 for token in ids):
            raise ValueError("it is no JSON list of token ids")
    except (OSError, ValueError) as error:
        log.warning("specscope: token ids of %s are not used: %s; the commonest are found", path, error)
        return ()
    return tuple(dict.fromkeys(ids))[:MAX_TOKEN_IDS]
