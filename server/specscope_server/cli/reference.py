"""`specscope reference`: profiles of a training dump, and a look into its files."""

from __future__ import annotations

import json
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from specscope_collectors.references.building import (
    DEFAULT_BUDGET_ROWS,
    DEFAULT_SEED,
    MAX_BUDGET_ROWS,
    Building,
    Order,
)
from specscope_collectors.references.document import MAGIC, SUFFIX, DocumentError, Reference, read_reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.final_norm import read_norm_weight
from specscope_collectors.references.inspecting import FileSeen, inspect
from specscope_collectors.references.manifests import manifest_of, read_manifest
from specscope_collectors.references.printing import SHOWN_TOKENS, reference_lines, seen_lines
from specscope_collectors.references.texts import plain, whole
from specscope_collectors.references.walking import check_exists
from specscope_collectors.replays.errors import ReplayError
from specscope_server.cli.progress import StepBar
from specscope_server.cli.reference_boundaries import calibrate, replay_torch, result_of, write
from specscope_server.cli.reference_layer_ids import boundaries as tell_boundaries
from specscope_server.cli.reference_options import read_token_ids
from specscope_server.cli.reference_replay import replay
from specscope_server.kit.clock import system_clock

USAGE_ERROR, FAILURE, STOPPED = 2, 1, 130
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Read a training dump: what its hidden states look like.",
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How things are printed."""

    TEXT = "text"
    JSON = "json"


Dump = Annotated[Path, typer.Argument(help="Folder of a dump, or one file of it.")]
Name = Annotated[str | None, typer.Option(help="What to call it; without it, as the folder is called.")]
Budget = Annotated[
    int, typer.Option(min=64, max=MAX_BUDGET_ROWS, help="Rows to read: up to 64 of each request.")
]
NormWeight = Annotated[
    Path | None,
    typer.Option(
        help="Part of the target's checkpoint with model.norm.weight: tells if the last state is post-norm."
    ),
]
Out = Annotated[Path | None, typer.Option(help=f"Result; without it, NAME{SUFFIX} in this folder.")]
HiddenSize = Annotated[
    int | None, typer.Option(min=1, max=1 << 20, help="Hidden size, where the shapes do not tell it.")
]
Boundaries = Annotated[
    str | None,
    typer.Option(help="Boundaries of the slots, e.g. 2,30,58; with one more, that of the last state."),
]
DraftConfig = Annotated[
    Path | None, typer.Option(help="config.json of the draft, for its eagle_aux_hidden_state_layer_ids.")
]
TokenIds = Annotated[
    Path | None,
    typer.Option(help="JSON list of token ids to keep directions of; without it, the 64 commonest."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the choice of requests and rows.")]
File = Annotated[Path, typer.Argument(help="One file of a dump, or a reference.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print it.")]
Tokens = Annotated[int, typer.Option(min=1, help="Tokens to print norms of; JSON has all.")]


@app.callback()
def group() -> None:
    """Read a training dump: what its hidden states look like."""


@app.command()
def build(
    path: Dump,
    name: Name = None,
    budget: Budget = DEFAULT_BUDGET_ROWS,
    norm_weight: NormWeight = None,
    out: Out = None,
    hidden_size: HiddenSize = None,
    boundaries: Boundaries = None,
    draft_config: DraftConfig = None,
    token_ids: TokenIds = None,
    seed: Seed = DEFAULT_SEED,
) -> None:
    """Profile the hidden states of a dump, from a few rows of many requests. Needs no GPU and no torch, and
    executes nothing of the dump. Stopped, it goes on when it is run again. Exit status: 0 built, 1 not
    readable, 2 wrong usage, 130 stopped.
    """
    check_exists(path)
    called = whole(name or path.absolute().name.partition(".")[0] or "dump")
    target = result_of(called, out)
    order = Order(
        root=path, name=called, made_ms=system_clock(), budget_rows=budget, seed=seed,
        hidden_size=hidden_size, boundaries=_numbers(boundaries), manifest=manifest_of(path),
        draft=read_manifest(draft_config) if draft_config else None,
        norm_weight=read_norm_weight(norm_weight) if norm_weight else None,
        token_ids=read_token_ids(token_ids) if token_ids else (),
        checkpoint=target.with_name(f"{target.name}.partial"),
    )  # fmt: skip
    try:
        building = Building(order)
        with StepBar("requests") as bar:
            reference = building.run(bar.at)
    except KeyboardInterrupt:
        typer.echo("specscope reference: stopped; run the same again to go on", err=True)
        raise typer.Exit(STOPPED) from None
    write(reference, target)
    building.forget()


@app.command("inspect")
def inspect_file(
    file: File,
    output: OutputFormat = Format.TEXT,
    tokens: Tokens = SHOWN_TOKENS,
    hidden_size: HiddenSize = None,
    norm_weight: NormWeight = None,
) -> None:
    """Show what a file of a dump holds: shapes, types, norms token by token, first values; or what a
    reference says. Exit status: 0 shown, 1 not readable, 2 wrong usage.
    """
    check_exists(file)
    if _is_reference(file):
        found: Reference | FileSeen = read_reference(file)
    else:
        found = inspect(file, hidden_size, read_norm_weight(norm_weight) if norm_weight else None)
    if output is Format.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        return
    for line in seen_lines(found, tokens) if isinstance(found, FileSeen) else reference_lines(found):
        typer.echo(line)


app.command("calibrate")(calibrate)
app.command("replay-torch")(replay_torch)
app.command("replay")(replay)


@app.command("token-ids")
def print_token_ids(file: File) -> None:
    """Print the token ids of a reference, as SPECSCOPE_PROBE_TOKEN_IDS reads them."""
    check_exists(file)
    typer.echo(json.dumps(list(read_reference(file).token_ids)))


app.command("boundaries")(tell_boundaries)


def _is_reference(path: Path) -> bool:
    if not path.is_file() or not path.name.endswith((SUFFIX, ".json")):
        return False
    with path.open("rb") as file:
        return file.read(2) == MAGIC or path.name.endswith(".json")


def _numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    if not re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text.strip()):
        raise typer.BadParameter(
            f"{text[:60]!r} is no list of boundaries; write 2,30,58", param_hint="--boundaries"
        )
    return tuple(map(int, text.split(",")))


def _failed(words: str) -> int:
    typer.echo(plain(f"specscope reference: {words}"), err=True)
    return FAILURE


def main(argv: list[str]) -> int:
    """Run `specscope reference ARGV` and return the exit status."""
    try:
        app(argv, prog_name="specscope reference", standalone_mode=True)
    except (DumpError, DocumentError, ReplayError) as error:
        return _failed(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _failed(f"{where}{error.strerror or error}")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
