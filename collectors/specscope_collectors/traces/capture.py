"""Ask an engine for a capture: SGLang's ``/start_profile`` for a number of steps, and wait for its files.

SGLang writes the files when the last step is done, in its scheduler's thread and behind a barrier of all
ranks: nothing is generated meanwhile. A few steps make that seconds, hundreds make it minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from specscope_collectors.traces.names import ENDINGS

MAX_STEPS = 500
POLL_SECONDS = 0.5
START_SECONDS = 60.0
STALL = (
    "the engine writes the trace in its scheduler's thread: it generates nothing until the files are written "
    "(seconds for a few dozen steps)"
)


class CaptureError(RuntimeError):
    """The engine did not give a capture. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What to capture."""

    base_url: str
    steps: int
    output_dir: str | None = None
    """A folder on the engine's host; None = the engine's own (``SGLANG_TORCH_PROFILER_DIR``, else /tmp)."""
    by_stage: bool = False
    activities: tuple[str, ...] = ("CPU", "GPU")
    profile_id: str | None = None
    """What the names of the files begin with; engines that do not know it begin them with the time."""
    admin_key: str | None = field(default=None, repr=False)

    def body(self) -> dict[str, object]:
        """Return what is sent: no stacks and no shapes, which make traces ten times as large."""
        body: dict[str, object] = {
            "num_steps": self.steps,
            "activities": list(self.activities),
            "profile_by_stage": self.by_stage,
            "with_stack": False,
            "record_shapes": False,
        }
        optional = {"output_dir": self.output_dir, "profile_id": self.profile_id}
        return body | {name: value for name, value in optional.items() if value is not None}


def start(client: httpx.Client, request: CaptureRequest) -> None:
    """Ask for the capture. Raises `CaptureError`."""
    if not 0 < request.steps <= MAX_STEPS:
        raise CaptureError(f"steps={request.steps}: capture 1 to {MAX_STEPS} steps; 20 to 50 say enough")
    url = f"{request.base_url.rstrip('/')}/start_profile"
    headers = {"Authorization": f"Bearer {request.admin_key}"} if request.admin_key else {}
    try:
        answer = client.post(url, json=request.body(), headers=headers, timeout=START_SECONDS)
    except httpx.HTTPError as error:
        raise CaptureError(f"{url} does not answer ({type(error).__name__}); check the address") from None
    if answer.status_code in (401, 403):
        raise CaptureError(f"{url} wants the engine's admin key; set SPECSCOPE_ENGINE_ADMIN_KEY")
    if answer.status_code == 404:
        raise CaptureError(f"{url} is not there: this engine takes no captures by HTTP, or it is no SGLang")
    if answer.is_error:
        said = " ".join(answer.text.split())[:200]
        raise CaptureError(f"{url} answered {answer.status_code}: {said or 'nothing more'}")


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait for the files, and for whom to say so."""

    deadline_seconds: float
    settled_seconds: float = 2.0
    """Files are taken when none has appeared or grown for so long."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    appeared: Callable[[], None] = lambda: None
    """Called once, when the first file is seen: the steps are recorded, and are being written."""


def files_in(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return trace files of a folder (and of folders in it) with size and time of change."""
    try:
        found = [each for each in folder.rglob("*") if each.name.endswith(ENDINGS) and each.is_file()]
        return {each: (each.stat().st_size, each.stat().st_mtime_ns) for each in found}
    except OSError:
        return {}


def wait(folder: Path, before: dict[Path, tuple[int, int]], waiting: Waiting) -> list[Path]:
    """Return the files that are new since ``before`` once they are whole. Raises `CaptureError`.

    Whole = they have stopped growing, and gzip's last bytes say how long their content is.
    """
    began = waiting.clock()
    seen: dict[Path, tuple[int, int]] = {}
    changed = began
    while waiting.clock() - began < waiting.deadline_seconds:
        now = {path: state for path, state in files_in(folder).items() if before.get(path) != state}
        if now and not seen:
            waiting.appeared()
        if now != seen:
            seen, changed = now, waiting.clock()
        elif now and waiting.clock() - changed >= waiting.settled_seconds and all(map(_is_whole, now)):
            return sorted(now)
        waiting.sleep(POLL_SECONDS)
    if seen:
        return sorted(seen)
    raise CaptureError(
        f"no trace appeared in {folder} within {waiting.deadline_seconds:g} s: steps are only counted while "
        "requests run, so send some; or the engine runs on another host: import its files there"
    )


def _is_whole(path: Path) -> bool:
    """Whether a file ends as the profiler ends it: JSON's last bracket, or a gzip trailer that fits."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            tail = file.read()
    except OSError:
        return False
    if not is_gzip:
        return tail.rstrip().endswith((b"}", b"]"))
    return len(tail) == 8 and (int.from_bytes(tail[4:], "little") > size or size > 1_000_000_000)
