"""The collectors' file: one TOML file that says what one process collects.

Tables: ``[options]``, ``[[target]]``, ``[[discover]]`` and one ``[[<source>]]`` for each kind of job. Nothing
is guessed: an unknown key or table is an error, and all errors of a file are said at once.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specscope_collectors.access import apply_access
from specscope_collectors.collect_tables import Options, Target, options_of, watching_of
from specscope_collectors.config import CollectorOptions
from specscope_collectors.discoveries import discovery_kinds
from specscope_collectors.jobs import job_kinds
from specscope_collectors.plan import CollectPlan, DiscoveryPlan, JobPlan, Watching
from specscope_collectors.tables import did_you_mean, interpolate, read_table

MAX_FILE_BYTES = 4 * 1024 * 1024
_SECRET_FILES = ("api_key_file", "router_api_key_file", "ca_file")


class CollectFileError(ValueError):
    """A file that cannot be used; ``problems`` names each file, table, key, reason and remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectFile:
    """Where the file is, and what holds besides."""

    path: Path
    base: CollectorOptions = field(default_factory=CollectorOptions)
    """Options that the file does not set."""
    also: tuple[Watching, ...] = ()
    """Servers that are watched whatever the file says: those of the command line."""

    def load(self) -> CollectPlan:
        """Read the file. Raises `CollectFileError`."""
        problems: list[str] = []
        document = _document(self.path)
        plan = _Reading(self, document, problems).plan()
        if problems:
            raise CollectFileError(problems)
        return plan

    def fingerprint(self) -> str:
        """Return what changes when the file, or a file of keys or certificates that it names, changes."""
        digest = hashlib.sha256()
        for path in (self.path, *_named_files(self.path)):
            digest.update(_content(path))
        return digest.hexdigest()

    def touched(self) -> tuple[tuple[int, ...], ...]:
        """Return when and how the files were last written: cheaper than `fingerprint`, changes more often."""
        return tuple(_stamp(path) for path in (self.path, *_named_files(self.path)))


def load_collect_file(
    path: str | Path, base: CollectorOptions | None = None, also: tuple[Watching, ...] = ()
) -> CollectPlan:
    """Return what the file says; ``base`` holds where it says nothing. Raises `CollectFileError`."""
    return CollectFile(path=Path(path), base=base or CollectorOptions(), also=also).load()


@dataclass(slots=True)
class _Reading:
    """One reading of the file: collects problems instead of stopping at the first."""

    file: CollectFile
    document: dict[str, Any]
    problems: list[str]

    def plan(self) -> CollectPlan:
        self._check_names()
        name = interpolate(self.document.get("name"), f"{self.file.path}: name", self.problems)
        options = self._options()
        plan = CollectPlan(
            options=options,
            targets=(*self.file.also, *self._targets(options)),
            jobs=self._jobs(options),
            discoveries=self._discoveries(options),
            file=self.file,
        )
        if name is None:
            return plan
        if not isinstance(name, str) or not name.strip():
            self.problems.append(
                f'{self.file.path}: name = {name!r}: a collector\'s name is text: name = "gpu1"'
            )
            return plan
        return CollectPlan(
            name=name.strip(),
            options=plan.options,
            targets=plan.targets,
            jobs=plan.jobs,
            discoveries=plan.discoveries,
            file=plan.file,
        )

    def _check_names(self) -> None:
        known = sorted(("name", "options", "target", "discover", *job_kinds()))
        for name in self.document:
            if name not in known:
                self.problems.append(
                    f"{self.file.path}: there is no table {name!r}.{did_you_mean(name, known)} "
                    f"Known: {', '.join(known)}"
                )

    def _options(self) -> CollectorOptions:
        table = self.document.get("options", {})
        where = f"{self.file.path}: [options]"
        if not isinstance(table, Mapping):
            self.problems.append(f"{where} must be one table: write [options] once")
            return self.file.base
        read = read_table(table, Options, where, self.problems)
        return self.file.base if read is None else options_of(read, self.file.base, where, self.problems)

    def _targets(self, options: CollectorOptions) -> tuple[Watching, ...]:
        found: list[Watching] = []
        for where, table in self._tables("target"):
            read = read_table(table, Target, where, self.problems)
            watching = None if read is None else watching_of(read, options, where, self.problems)
            if watching is not None and not self._is_twin(watching, found, where):
                found.append(watching)
        return tuple(found)

    def _is_twin(self, new: Watching, found: list[Watching], where: str) -> bool:
        for one in (*self.file.also, *found):
            if one.target.name == new.target.name:
                self.problems.append(
                    f"{where}: two servers are named {new.target.name!r} ({one.target.base_url} and "
                    f'{new.target.base_url}); give one of them another name = "…"'
                )
            elif one.target.base_url == new.target.base_url:
                self.problems.append(
                    f"{where}: {new.target.base_url} is watched already as {one.target.name!r}; "
                    "leave one of the two out"
                )
            else:
                continue
            return True
        return False

    def _discoveries(self, options: CollectorOptions) -> tuple[DiscoveryPlan, ...]:
        found = (self._discovery(where, table, options) for where, table in self._tables("discover"))
        plans = [plan for plan in found if plan is not None]
        return tuple(plans)

    def _discovery(
        self, where: str, table: dict[str, Any], options: CollectorOptions
    ) -> DiscoveryPlan | None:
        kinds = discovery_kinds()
        name = table.pop("kind", None)
        if not isinstance(name, str) or name not in kinds:
            hint = did_you_mean(name, kinds) if isinstance(name, str) else ""
            given = "the key 'kind' is missing" if name is None else f"there is no kind {name!r}"
            self.problems.append(f"{where}: {given}.{hint} Known kinds: {', '.join(kinds)}")
            return None
        config = read_table(table, kinds[name].config, where, self.problems)
        if config is None:
            return None
        read_as = apply_access(config, options, where, self.problems)
        return DiscoveryPlan(kind=kinds[name], config=config, options=read_as, where=where)

    def _jobs(self, options: CollectorOptions) -> tuple[JobPlan, ...]:
        plans = []
        for kind in job_kinds().values():
            for where, table in self._tables(kind.source):
                config = read_table(table, kind.config, where, self.problems)
                if config is not None:
                    plans.append(JobPlan(kind=kind, config=config, where=where, options=options))
        return tuple(plans)

    def _tables(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        tables = self.document.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.problems.append(f"{self.file.path}: {name} must be a list of tables: write [[{name}]]")
            return []
        return [
            (f"{self.file.path}: [[{name}]] {number}", dict(table)) for number, table in enumerate(tables, 1)
        ]


def _document(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CollectFileError(
            [f"{path} cannot be read ({error.strerror}); name a readable TOML file"]
        ) from None
    if len(content) > MAX_FILE_BYTES:
        raise CollectFileError([f"{path} has {len(content)} bytes, more than {MAX_FILE_BYTES}; split it"])
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CollectFileError([f"{path} is not TOML: {error}; correct that line"]) from None


def _named_files(path: Path) -> list[Path]:
    """Return the files of keys and certificates that the file names; none when it cannot be read."""
    try:
        document = _document(path)
    except CollectFileError:
        return []
    tables = [each for value in document.values() for each in (value if isinstance(value, list) else [value])]
    found = (table.get(key) for table in tables if isinstance(table, dict) for key in _SECRET_FILES)
    return sorted({Path(interpolate(name, "", [])) for name in found if isinstance(name, str)})


def _content(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError as error:
        return type(error).__name__.encode()


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino)
