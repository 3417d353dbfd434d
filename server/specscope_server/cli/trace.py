"""`specscope trace`: let an engine record a profiler trace, and import it."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import httpx
import typer

from specscope_collectors.config import TargetError, parse_target
from specscope_collectors.traces.bounds import TraceError
from specscope_collectors.traces.capture import (
    STALL,
    CaptureError,
    CaptureRequest,
    Waiting,
    files_in,
    start,
    wait,
)
from specscope_collectors.traces.opening import captures
from specscope_server.cli.import_arguments import name_of
from specscope_server.cli.import_trace import Name, Note, store_captures
from specscope_server.cli.options import Database
from specscope_server.cli.progress import ReadingBar
from specscope_server.kit.errors import SpecscopeError
from specscope_server.logging import configure_logging
from specscope_server.settings import load_settings
from specscope_server.traces.receiving import Told

USAGE_ERROR, FAILURE = 2, 1
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Let an engine record a profiler trace, and import it.",
    pretty_exceptions_enable=False,
)
Url = Annotated[
    str,
    typer.Option("--server", help="Base URL of an SGLang server, e.g. http://gpu1:30000; NAME=URL names it."),
]
Steps = Annotated[int, typer.Option(help="Forward steps (cycles) to record.", min=1, max=500)]
ByStage = Annotated[bool, typer.Option("--by-stage", help="Record prefill and decode apart.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output-dir",
        help="Folder into which the engine writes and from which its files are taken: on this host, or "
        "shared with its. Without it: a new folder that only this user may write to.",
    ),
]
Elsewhere = Annotated[
    bool, typer.Option("--no-wait", help="Only start: the engine runs on another host and shares no folder.")
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for the files.", min=1, max=86_400)]
CpuOnly = Annotated[bool, typer.Option("--cpu-only", help="Record no GPU activity (much smaller traces).")]


@app.callback()
def group() -> None:
    """Let an engine record a profiler trace, and import it."""


@app.command()
def capture(
    server: Url,
    steps: Steps = 30,
    by_stage: ByStage = False,
    output_dir: Folder = None,
    no_wait: Elsewhere = False,
    cpu_only: CpuOnly = False,
    timeout: Timeout = 300.0,
    name: Name = None,
    note: Note = "",
    database: Database = None,
) -> None:
    """Start a capture with SGLang's /start_profile, wait for its files, and import them. The admin key comes
    from SPECSCOPE_ENGINE_ADMIN_KEY. Steps are counted while requests run: send some. Exit status: 0
    imported, 1 no capture, 2 wrong usage.
    """
    settings = load_settings({"database": database})
    configure_logging(settings.log_format, "warning")
    try:
        target = parse_target(server)
    except TargetError as error:
        typer.echo(f"specscope trace capture: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    told = Told(name_of(target.name), name, note)
    key = settings.engine_admin_key or settings.engine_api_key
    folder = None if no_wait and output_dir is None else (output_dir or _new_folder()).absolute()
    request = CaptureRequest(
        base_url=target.base_url,
        steps=steps,
        output_dir=str(folder) if folder else None,
        by_stage=by_stage,
        activities=("CPU",) if cpu_only else ("CPU", "GPU"),
        admin_key=key.get_secret_value() if key else None,
    )
    verify: bool | str = str(settings.ca_file) if settings.ca_file else settings.tls_verify
    before = files_in(folder) if folder else {}
    typer.echo(f"capture   {steps} steps of {target.base_url}; {STALL}", err=True)
    with ExitStack() as stack:
        start(stack.enter_context(httpx.Client(verify=verify)), request)
    if no_wait or folder is None:
        where = folder or "its SGLANG_TORCH_PROFILER_DIR (else /tmp)"
        typer.echo(
            f"started   the engine writes into {where}; import it with specscope import trace", err=True
        )
        return
    typer.echo(f"recording steps are counted while requests run; files are awaited in {folder}", err=True)
    paths = wait(folder, before, Waiting(timeout))
    found = captures(paths)
    with ReadingBar(paths) as bar:
        failed = store_captures(found, told, bar, settings)
    if failed:
        raise typer.Exit(FAILURE)


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="specscope-capture-"))


def main(argv: list[str]) -> int:
    """Run `specscope trace ARGV` and return the exit status: 1 not done, 2 wrong usage."""
    try:
        app(argv, prog_name="specscope trace")
    except SpecscopeError as error:
        typer.echo(f"specscope trace: {error.detail}", err=True)
        return FAILURE
    except (CaptureError, TraceError, OSError) as error:
        typer.echo(f"specscope trace: {error}", err=True)
        return FAILURE
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
