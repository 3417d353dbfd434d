"""`specscope doctor`: say what can and cannot be seen at a server, and which flag or variable shows more."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from specscope_collectors.config import CollectorOptions, OptionsError, TargetError, parse_targets
from specscope_collectors.doctor import Diagnosis, Finding, Grade, examine_all
from specscope_server.kit.errors import InvalidInput
from specscope_server.settings import Settings, load_settings

app = typer.Typer(add_completion=False)

USAGE_ERROR = 2
MARKS = {Grade.OK: ("ok", "green"), Grade.MISSING: ("missing", "yellow"), Grade.BAD: ("bad", "red")}
CLOSING = {
    0: "Everything that Specscope uses can be seen.",
    1: "Some things cannot be seen; each says how to show it.",
    2: "Nothing can be seen there.",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Format(StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


Watch = Annotated[
    list[str] | None, typer.Option(help="Server to look at: HOST:PORT, URL or NAME=URL; may be repeated.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        help="Key of the servers; better set SPECSCOPE_ENGINE_API_KEY, which no list of processes shows."
    ),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="`text` for people, `json` for scripts.")]
Timeout = Annotated[float | None, typer.Option(help="Longest time for one answer, in seconds.")]
TlsVerify = Annotated[bool | None, typer.Option(help="Check the certificates of the servers.")]
CaFile = Annotated[
    Path | None, typer.Option(help="PEM file of the authority that signed their certificates.")
]


@app.command()
def run(
    watch: Watch = None,
    api_key: ApiKey = None,
    output: OutputFormat = Format.TEXT,
    scrape_timeout_seconds: Timeout = None,
    tls_verify: TlsVerify = None,
    ca_file: CaFile = None,
) -> None:
    """Look at servers once. Exit status: 0 all can be seen, 1 something is missing, 2 nothing can."""
    flags = {  # one that was not given leaves the setting as it is
        "watch": watch or None,
        "scrape_timeout_seconds": scrape_timeout_seconds,
        "tls_verify": tls_verify,
        "ca_file": ca_file,
    }
    try:
        settings = load_settings(flags)
        targets = parse_targets(settings.watch)
        if not targets:
            raise InvalidInput("no server to look at; name one: specscope doctor --watch http://HOST:30000")
        found = examine_all(targets, options_from(settings, api_key))
    except (InvalidInput, TargetError, OptionsError) as error:
        typer.echo(f"specscope doctor: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    if output is Format.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print_text(found, Console(soft_wrap=True, highlight=False))
    raise typer.Exit(max(diagnosis.exit_status for diagnosis in found))


def options_from(settings: Settings, api_key: str | None) -> CollectorOptions:
    """Return how to read the servers; the flag wins over the setting."""
    stored = settings.engine_api_key.get_secret_value() if settings.engine_api_key else None
    return CollectorOptions(
        scrape_timeout_seconds=settings.scrape_timeout_seconds,
        max_body_bytes=settings.max_body_bytes,
        max_series_per_target=settings.max_series_per_target,
        api_key=api_key or stored,
        tls_verify=settings.tls_verify,
        ca_file=str(settings.ca_file) if settings.ca_file else None,
    )


def print_text(found: list[Diagnosis], console: Console) -> None:
    """Print each target with its findings; what servers say is shown as text, never obeyed as markup."""
    for diagnosis in found:
        console.print(Text(f"{diagnosis.target}  {diagnosis.url}", style="bold"))
        for finding in diagnosis.findings:
            _print_finding(finding, console)
        console.print(Text(f"  {CLOSING[diagnosis.exit_status]}\n"))


def _print_finding(finding: Finding, console: Console) -> None:
    word, colour = MARKS[finding.grade]
    line = Text(f"  {word:<8}", style=colour)
    line.append(_plain(f"{finding.subject}: {finding.words}"), style="default")
    console.print(line)
    if finding.remedy:
        console.print(Text(f"          → {_plain(finding.remedy)}"))


def _plain(text: str) -> str:
    return _CONTROL.sub(" ", text)


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, prog_name="specscope doctor")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
