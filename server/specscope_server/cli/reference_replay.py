"""`specscope reference replay`: training samples through the engine, compared row by row."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from specscope_collectors.references.document import SLOTS, Reference, read_reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.manifests import manifest_of
from specscope_collectors.references.texts import plain
from specscope_collectors.references.training_rows import read_rows
from specscope_collectors.references.walking import check_exists
from specscope_collectors.replays.engine import Engine, new_run
from specscope_collectors.replays.pairing import compare
from specscope_collectors.replays.result import WORDS, document_of, event_of, exit_status
from specscope_collectors.replays.returned import through_engine
from specscope_collectors.replays.samples import Training, Wanted, read_samples
from specscope_collectors.replays.spooled import Gathered, through_probe
from specscope_collectors.replays.telling import check_receiver, send_event
from specscope_collectors.replays.verdicts import Verdict
from specscope_server.kit.clock import system_clock

COLUMNS = ("slot", "verdict", "trained on", "nearest", "rel. L2", "cos", "norm", "next", "rows")
"""``next``: relative L2 of the next place over that of the nearest."""
API_KEY, TOKEN = "SPECSCOPE_REPLAY_API_KEY", "SPECSCOPE_TOKEN"


class Format(StrEnum):
    """How the result is printed."""

    TEXT = "text"
    JSON = "json"


Server = Annotated[str, typer.Option(help="Address of the engine, e.g. http://host:30000.")]
Dump = Annotated[Path, typer.Option(help="Folder of the training dump, or one file of it.")]
Spool = Annotated[
    Path | None,
    typer.Option(
        help="SPECSCOPE_SPOOL of the engine's probe, which runs with SPECSCOPE_PROBE_REPLAY=1. Without it, "
        "SGLang's own return of states is used where it can be trusted."
    ),
]
Rows = Annotated[
    Path | None,
    typer.Option(
        help="Rows of these samples at all boundaries, from replay-torch --rows: names an off-by-one."
    ),
]
ReferenceFile = Annotated[
    Path | None, typer.Option("--reference", help="Reference of the dump: its boundaries are taken.")
]
Requests = Annotated[int, typer.Option(min=1, max=256, help="Samples to send.")]
Tokens = Annotated[int, typer.Option(min=8, max=8_192, help="First tokens of each.")]
FlushCache = Annotated[
    bool,
    typer.Option("--flush-cache", help="Drop the engine's prefix cache first: cached rows are not computed."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print the result.")]
Specscope = Annotated[
    str | None, typer.Option(help=f"Address of a Specscope to tell; its token is read from {TOKEN}.")
]
WatchedName = Annotated[str | None, typer.Option(help="Name of the engine there; without it, host:port.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the choice of samples.")]


def replay(
    server: Server,
    dump: Dump,
    spool: Spool = None,
    rows: Rows = None,
    reference: ReferenceFile = None,
    requests: Requests = 8,
    tokens: Tokens = 256,
    flush_cache: FlushCache = False,
    output: OutputFormat = Format.TEXT,
    specscope: Specscope = None,
    name: WatchedName = None,
    seed: Seed = 0,
) -> None:
    """Send a few training samples to the engine as token ids, and compare the states that it had with those
    of training, row by row and slot by slot. Exit status: 0 as in training, 1 not possible, 2 wrong usage,
    3 a slot is not what it was trained on, 4 some slot could not be told.
    """
    check_exists(dump)
    known = read_rows(rows) if rows else None
    found = read_reference(reference) if reference else None
    names = tuple(each.name for each in known or ())
    training = read_samples(_wanted(dump, found, names, requests, tokens, seed))
    watched = name or server.split("://")[-1].rstrip("/")
    if specscope is not None:
        check_receiver(specscope, watched, os.environ.get(TOKEN))
    run = new_run()
    engine = Engine(server, os.environ.get(API_KEY))
    try:
        if flush_cache:
            engine.flush_cache()
        gathered = (
            through_probe(engine, training, run, spool) if spool else through_engine(engine, training, run)
        )
    finally:
        engine.close()
    compared = compare(training, gathered.served, known, gathered.missing)
    document = document_of(compared, training, gathered, run)
    if output is Format.JSON:
        typer.echo(json.dumps(document, indent=1))
    else:
        show(document, training, gathered)
    if specscope is not None:
        send_event(specscope, watched, os.environ.get(TOKEN), event_of(document, system_clock()))
        typer.echo(f"told {specscope} of it, under {plain(watched)}", err=True)
    raise typer.Exit(exit_status(compared))


def _wanted(
    dump: Path, reference: Reference | None, names: tuple[str, ...], requests: int, tokens: int, seed: int
) -> Wanted:
    """Return which samples to read. Raises DumpError for a reference of another kind."""
    boundaries: tuple[int, ...] = ()
    if reference is not None:
        if reference.kind != SLOTS:
            raise DumpError("--reference is of all boundaries; give the one that was built from the dump")
        found = [*reference.boundaries, *([reference.last.boundary] if reference.last else [])]
        if found and found[-1] is None:
            found = found[:-1]
        boundaries = tuple(each for each in found if each is not None)
        boundaries = boundaries if len(boundaries) == len(found) else ()
    return Wanted(
        root=dump, names=names, requests=requests, tokens=tokens, seed=seed, boundaries=boundaries,
        hidden_size=reference.hidden_size if reference else None, manifest=manifest_of(dump),
    )  # fmt: skip


def show(document: dict[str, Any], training: Training, gathered: Gathered) -> None:
    """Print a table, and below it what each slot is in words."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if place > 3 else "left", overflow="fold", no_wrap=place < 2)
    for each in document["slots"]:
        table.add_row(*_cells(each))
    Console(highlight=False, emoji=False, markup=False).print(table)
    for each in document["slots"]:
        typer.echo(f"slot {each['slot']}: {plain(each['words'])}")
    captured = document["captured"]
    way = "the probe" if gathered.way == "probe" else "SGLang's own return of states"
    where = f"; the engine says that it captures {', '.join(map(str, captured))}" if captured else ""
    typer.echo(f"{document['requests']} samples, {document['tokens']} tokens, through {way}{where}")
    if document["compared_with"] == "slots":
        typer.echo(
            "Only the slots of training are known: swaps and shifts by a slot can be told, an off-by-one "
            "cannot; give --rows."
        )


def _cells(each: dict[str, Any]) -> list[str]:
    near = each["at_nearest"] or {}
    ratio = near.get("ln_norm_ratio")
    return [
        str(each["slot"]), WORDS[Verdict(each["verdict"])], each["claimed"] or "–", each["nearest"] or "–",
        _shown(near.get("relative_l2")), _shown(near.get("cosine")),
        _shown(2.718281828459045**ratio if ratio is not None else None), _shown(each["runner_up_ratio"]),
        str(each["rows"]),
    ]  # fmt: skip


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
