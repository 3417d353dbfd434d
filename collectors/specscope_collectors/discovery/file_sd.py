"""Servers from Prometheus `file_sd` files: the same lists that a Prometheus already reads."""

from __future__ import annotations

import asyncio
import glob
import json
from pathlib import Path
from typing import Any

import msgspec
import yaml

from specscope_collectors.discoveries import Answer, Discover, DiscoveryContext, DiscoveryError, Listed
from specscope_collectors.observations import HealthState
from specscope_collectors.parts import Parts

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_FILES = 1_000
ENDINGS = (".json", ".yml", ".yaml")
METRICS_PATH = "/metrics"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Config(Discover, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lists in Prometheus' `file_sd` form, JSON or YAML. A changed file takes effect with the next look."""

    files: list[str]
    """Paths; `*` and `?` stand for any text. They end in `.json`, `.yml` or `.yaml`."""
    interval_seconds: float = 5.0
    """Between two looks whether a file changed."""

    def __post_init__(self) -> None:
        """Refuse what is no such file."""
        Discover.__post_init__(self)
        if not self.files:
            raise ValueError('files is empty; name at least one: files = ["/etc/targets/*.json"]')
        for name in self.files:
            if not name.endswith(ENDINGS):
                raise ValueError(f"files: {name!r} does not end in .json, .yml or .yaml; name such a file")


class Group(msgspec.Struct, frozen=True):
    """One group of a file; other keys are left alone, as Prometheus does not know them either."""

    targets: list[str]
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class FileSd:
    """Remembers the last good list of each file."""

    keep_seconds: float | None = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._parts = Parts()
        self._stamps: dict[str, tuple[int, ...]] = {}

    @property
    def asked(self) -> str:
        """Return the patterns."""
        return ", ".join(self._config.files)

    async def look(self) -> Answer:
        """Read the files that changed. Raises `DiscoveryError` when no file can be read."""
        return await asyncio.to_thread(self._look)

    async def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> Answer:
        found = sorted({path for pattern in self._config.files for path in glob.glob(pattern)})  # noqa: PTH207
        if not found:
            remedy = "write the file, or correct the path"
            raise DiscoveryError(f"no file matches {self.asked}", remedy=remedy)
        self._parts.retain(found[:MAX_FILES])
        self._stamps = {path: stamp for path, stamp in self._stamps.items() if path in found}
        for path in found[:MAX_FILES]:
            self._read(path)
        return self._parts.answer()

    def _read(self, path: str) -> None:
        try:
            status = Path(path).stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._stamps.get(path) == stamp:
                return
            listed, refused = read_groups(path, _content(path, status.st_size))
        except DiscoveryError as error:
            self._stamps.pop(path, None)
            self._parts.bad(path, error)
        except OSError as error:
            self._stamps.pop(path, None)
            self._parts.bad(path, DiscoveryError(f"{path} cannot be read: {error.strerror}"))
        else:
            self._stamps[path] = stamp
            self._parts.good(path, listed, refused)


def read_groups(path: str, content: bytes) -> tuple[list[Listed], list[str]]:
    """Return the servers of one file and in words what was refused. Raises `DiscoveryError`."""
    try:
        text = content.decode()
        data = json.loads(text) if path.endswith(".json") else yaml.load(text, _Loader)  # noqa: S506 (safe)
        groups = msgspec.convert(data, list[Group])
    except (ValueError, yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DiscoveryError(
            f"{path} is no list of targets: {reason}",
            state=HealthState.INVALID,
            remedy='write [{"targets": ["host:port"], "labels": {}}], and replace the file by renaming',
        ) from None
    listed, refused = [], []
    for group in groups:
        for address in group.targets:
            try:
                listed.append(_listed(address, group.labels))
            except ValueError as error:
                refused.append(str(error))
    return listed, refused


def _listed(address: str, labels: dict[str, str]) -> Listed:
    """Return the server that Prometheus would read with these labels."""
    address = labels.get("__address__", address)
    scheme = labels.get("__scheme__", "http")
    path = labels.get("__metrics_path__", METRICS_PATH)
    if scheme not in ("http", "https"):
        raise ValueError(f"{address[:80]}: __scheme__ {scheme[:20]!r} cannot be watched")
    if not path.endswith(METRICS_PATH):
        raise ValueError(f"{address[:80]}: __metrics_path__ {path[:80]!r} does not end in /metrics")
    url = address if "://" in address else f"{scheme}://{address}"
    kept = {name: value for name, value in labels.items() if not name.startswith("__") and name != "name"}
    return Listed(url + path.removesuffix(METRICS_PATH), labels.get("name"), kept)


def _content(path: str, size: int) -> bytes:
    if size > MAX_FILE_BYTES:
        raise DiscoveryError(
            f"{path} has {size} bytes, more than {MAX_FILE_BYTES}", state=HealthState.TOO_LARGE
        )
    with Path(path).open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def build(config: Config, context: DiscoveryContext) -> FileSd:
    """Return the discovery."""
    return FileSd(config)
