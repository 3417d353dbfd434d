"""Engines forked from a process that has imported SGLang: a start takes 3 s instead of 25 s.

See `tests/sglang_cpu/nursery.py` for the other side.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.sglang_cpu import environment

MODULES = (
    "sglang.launch_server",
    "sglang.srt.entrypoints.http_server",
    "sglang.srt.managers.scheduler",
    "sglang.srt.managers.detokenizer_manager",
    "sglang.srt.models.registry",
)
END_SECONDS = 20.0


class Forked:
    """An engine that a nursery started, as far as a process can be asked that is not one's own child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        """Also that of its process group."""
        try:
            self._descriptor: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._descriptor = None

    def poll(self) -> str | None:
        """Return None while it runs; how it ended is not known."""
        return None if not self._has_ended(0) else "that is not known"

    def wait(self, seconds: float) -> None:
        """Wait until it has ended. Raises subprocess.TimeoutExpired."""
        if not self._has_ended(seconds):
            raise subprocess.TimeoutExpired(f"process {self.pid}", seconds)

    def _has_ended(self, seconds: float) -> bool:
        if self._descriptor is not None and select.select([self._descriptor], [], [], seconds)[0]:
            os.close(self._descriptor)
            self._descriptor = None
        return self._descriptor is None


class Nursery:
    """One process with one version of SGLang; it ends with this one.

    SGLang reads some of its variables when it is imported, so they are the same in all engines of a nursery.
    """

    def __init__(self, python: Path, sglang: Path | None, settings: Mapping[str, str]) -> None:
        own = environment.serving_environment() | dict(settings)
        paths = [str(path) for path in (sglang, own["PYTHONPATH"]) if path is not None]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (until `close`)
        self._process = subprocess.Popen(
            [str(python), str(environment.HERE / "nursery.py"), *MODULES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=own | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
            text=True,
        )
        atexit.register(self.close)

    def start(self, arguments: Sequence[str], variables: Mapping[str, str], log: Path) -> Forked:
        """Start an engine with SGLang's arguments in this environment. Raises RuntimeError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": [*arguments], "environment": {**variables}, "log": str(log)}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            self._said.seek(0)
            raise RuntimeError(f"the nursery ended: {self._said.read().decode(errors='replace')[-4000:]}")
        return Forked(int(answer))

    def close(self) -> None:
        """End it and its engines."""
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                stream.close()
        self._process.wait(END_SECONDS)


@cache
def _nursery(python: Path, sglang: Path | None, settings: frozenset[tuple[str, str]]) -> Nursery:
    return Nursery(python, sglang, dict(settings))


def nursery(python: Path, sglang: Path | None, variables: Mapping[str, str]) -> Nursery:
    """Return the nursery of the rig's SGLang or of another version, for these variables."""
    settings = {name: value for name, value in variables.items() if name.startswith("SGLANG_")}
    return _nursery(python, sglang, frozenset(settings.items()))
