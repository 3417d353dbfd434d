"""`specscope reference calibrate` and `replay-torch`: references of all boundaries."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from specscope_collectors.references.building import DEFAULT_SEED, MAX_BUDGET_ROWS
from specscope_collectors.references.calibrating import calibrate as calibrated
from specscope_collectors.references.document import SUFFIX, Reference, packed
from specscope_collectors.references.printing import reference_lines
from specscope_collectors.references.texts import plain, whole
from specscope_collectors.references.torch_replay import MOST_TOKENS, ReplayOrder, replay
from specscope_collectors.references.torch_target import Target
from specscope_collectors.references.walking import check_exists
from specscope_server.cli.progress import StepBar
from specscope_server.cli.reference_options import check_result, file_name, read_token_ids
from specscope_server.kit.clock import system_clock

DEFAULT_ROWS = 16_384


class Dtype(StrEnum):
    """Of the weights of a target in torch."""

    AUTO = "auto"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


Spool = Annotated[Path, typer.Argument(help="Folder that the probe of the calibration launch wrote into.")]
Dumps = Annotated[list[Path], typer.Argument(help="Folders of dumps: better several kinds of text.")]
Model = Annotated[Path, typer.Option(help="Folder of the target's checkpoint, with its config.json.")]
Name = Annotated[str | None, typer.Option(help="What to call it; without it, as the folder is called.")]
ModelName = Annotated[
    str, typer.Option("--model", help="Name or path of the target, as the reference of the dump has it.")
]
Out = Annotated[Path | None, typer.Option(help=f"Result; without it, NAME{SUFFIX} in this folder.")]
Budget = Annotated[
    int, typer.Option(min=64, max=MAX_BUDGET_ROWS, help="Rows to read: up to 64 of each request.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the choice of requests and rows.")]
TokenIds = Annotated[
    Path | None,
    typer.Option(help="JSON list of token ids to keep directions of: those of the dump's reference."),
]
Device = Annotated[str, typer.Option(help="Where torch computes, e.g. cuda:0.")]
RowsOut = Annotated[
    Path | None, typer.Option(help="Also keep whole rows of a few requests: what a paired replay ranks with.")
]
Longest = Annotated[int, typer.Option(min=8, help="Tokens of a request that are replayed.")]


def calibrate(spool: Spool, name: Name = None, model: ModelName = "", out: Out = None) -> None:
    """Make a reference of all boundaries from what the probe wrote in a calibration launch of the engine.
    Exit status: 0 made, 1 not readable, 2 wrong usage.
    """
    called = whole(name or spool.absolute().name or "calibration")
    target = result_of(called, out)
    write(calibrated(spool, called, system_clock(), whole(model)), target)


def replay_torch(
    dumps: Dumps,
    model: Model,
    name: Name = None,
    out: Out = None,
    budget: Budget = DEFAULT_ROWS,
    token_ids: TokenIds = None,
    dtype: Dtype = Dtype.AUTO,
    device: Device = "cpu",
    rows: RowsOut = None,
    longest: Longest = MOST_TOKENS,
    seed: Seed = DEFAULT_SEED,
) -> None:
    """Make a reference of all boundaries by replaying texts of dumps through the target in torch. Needs
    specscope[states] and a machine that the model fits into. Exit status: 0 made, 1 not readable, 2 wrong
    usage.
    """
    for each in (*dumps, model):
        check_exists(each)
    called = whole(name or f"{model.absolute().name}-boundaries")
    written = result_of(called, out)
    if rows is not None:
        check_result(rows, "--rows")
    order = ReplayOrder(
        dumps=tuple(dumps), name=called, made_ms=system_clock(),
        model=whole(str(model)), budget_rows=budget, seed=seed, rows_file=rows, most_tokens=longest,
        token_ids=read_token_ids(token_ids) if token_ids else (),
    )  # fmt: skip
    target = Target(model, dtype.value, device)
    with StepBar("requests") as bar:
        reference = replay(order, target, bar.at)
    write(reference, written)


def result_of(called: str, out: Path | None) -> Path:
    """Return where a reference is to be put. Raises DumpError when it cannot be."""
    target = out or Path(f"{file_name(called)}{SUFFIX}")
    check_result(target, "--out")
    return target


def write(reference: Reference, target: Path) -> None:
    """Write a reference whole or not at all, and say what it holds. Raises DumpError, OSError."""
    check_result(target, "--out")
    hidden = target.with_name(f".{target.name}.new")
    try:
        with hidden.open("wb") as file:
            file.write(packed(reference))
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
    for line in reference_lines(reference):
        typer.echo(line)
    typer.echo(plain(f"written   {target} ({target.stat().st_size:,} bytes)"))
