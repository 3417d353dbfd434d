"""Start captures at watched engines, one at a time, and import what they write."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from pathlib import Path

import httpx
import structlog
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.capture import (
    MAX_STEPS,
    STALL,
    CaptureError,
    CaptureRequest,
    Waiting,
    files_in,
    start,
    wait,
)
from specscope_collectors.traces.opening import CaptureFiles, captures
from specscope_server.kit.errors import InvalidInput, SpecscopeError, Unavailable
from specscope_server.kit.web.state import AppState
from specscope_server.settings import Settings
from specscope_server.store.lookup import server_by_name
from specscope_server.traces import receiving
from specscope_server.traces.schemas import CaptureOrder, CaptureState

REMEMBERED = 20
DEADLINE_SECONDS = 600.0
RUNNING, WAITING, DONE, FAILED = "running", "waiting", "done", "failed"
UNDER_WAY = (RUNNING, WAITING)
ELSEWHERE = (
    "started; the files stay on the engine's host (SGLANG_TORCH_PROFILER_DIR, else /tmp): import them there, "
    "or set trace_capture_folder to a folder that both hosts share"
)
__all__ = ["MAX_STEPS", "STALL", "UNDER_WAY", "Captures", "captures_of"]
log = structlog.get_logger(__name__)


class Captures:
    """Captures that were started by this process."""

    def __init__(self) -> None:
        self._states: deque[CaptureState] = deque(maxlen=REMEMBERED)
        self._turn = threading.Lock()

    def states(self) -> list[CaptureState]:
        """Return them, newest first."""
        return list(self._states)

    def start(
        self, session: Session, state: AppState, settings: Settings, order: CaptureOrder
    ) -> CaptureState:
        """Ask the engine; what it writes is imported by a thread of its own.

        Raises `NotFound`, `InvalidInput` (the engine refuses), `Unavailable` (another capture runs).
        """
        server = server_by_name(session, order.server)
        if not server.base_url.startswith(("http://", "https://")):
            raise InvalidInput(
                f"{order.server[:80]} is known from {server.base_url[:40]} only: nobody to ask"
            )
        if not self._turn.acquire(blocking=False):
            raise Unavailable("another capture runs; its state stands at /api/v1/trace-captures")
        name, folder = server.name, settings.trace_capture_folder
        try:
            before = files_in(folder) if folder else {}
            _ask(server.base_url, settings, order)
        except BaseException:
            self._turn.release()
            raise
        began = CaptureState(
            server=name,
            steps=order.steps,
            state=RUNNING,
            trace_ids=[],
            words=f"recording {order.steps} steps; they are only counted while requests run",
        )
        self._states.appendleft(began)
        if folder is None:
            self._end(began, DONE, ELSEWHERE, [])
            return began
        arguments = (began, state, settings, folder, before)
        threading.Thread(target=self._follow, args=arguments, name="trace-capture", daemon=True).start()
        return began.model_copy()

    def _follow(
        self, began: CaptureState, state: AppState, settings: Settings, folder: Path,
        before: dict[Path, tuple[int, int]],
    ) -> None:  # fmt: skip
        try:
            waiting = Waiting(DEADLINE_SECONDS, appeared=partial(_files_appeared, began))
            paths = wait(folder, before, waiting)
            ids = [take(state, settings, each.name, each.paths, began) for each in captures(paths)]
        except (CaptureError, TraceError, OSError, SQLAlchemyError) as error:
            self._end(began, FAILED, str(error), [])
        except SpecscopeError as error:
            self._end(began, FAILED, error.detail, [])
        except BaseException:
            self._end(began, FAILED, "an error of ours; see the log", [])
            raise
        else:
            self._end(began, DONE, f"imported {len(ids)} capture{'s' * (len(ids) > 1)}", ids)

    def _end(self, began: CaptureState, state: str, words: str, ids: list[int]) -> None:
        began.trace_ids, began.words, began.state = ids, words, state
        self._turn.release()
        log.info("capture ended", server=began.server, state=state, words=words)


def _files_appeared(began: CaptureState) -> None:
    began.words = "the engine writes the files, and generates nothing meanwhile"
    began.state = WAITING


def take(state: AppState, settings: Settings, name: str, paths: tuple[Path, ...], began: CaptureState) -> int:
    """Import the files of one capture and return its id."""
    told = receiving.Told(began.server, name, f"{began.steps} steps, started from here")
    files = CaptureFiles(name, paths)
    record = receiving.reduce_files(files, told, state.clock(), lambda path: path.open("rb"), Bounds())
    trace_id, _ = receiving.store(state.engine, told, record, state.clock())
    receiving.keep_files(settings, record, files)
    return trace_id


def _ask(base_url: str, settings: Settings, order: CaptureOrder) -> None:
    folder = settings.trace_capture_folder
    key = settings.engine_admin_key or settings.engine_api_key
    verify: bool | str = str(settings.ca_file) if settings.ca_file else settings.tls_verify
    request = CaptureRequest(
        base_url, order.steps, output_dir=str(folder.resolve()) if folder else None, by_stage=order.by_stage,
        admin_key=key.get_secret_value() if key else None,
    )  # fmt: skip
    try:
        with httpx.Client(verify=verify) as client:
            start(client, request)
    except CaptureError as error:
        raise InvalidInput(str(error)) from None


def captures_of(app: FastAPI) -> Captures:
    """Return the captures of an application."""
    found: Captures | None = getattr(app.state, "trace_captures", None)
    if found is None:
        found = app.state.trace_captures = Captures()
    return found
