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

from specscope_collectors.discovery_words import servers
from specscope_collectors.doctor import Diagnosis, Finding, Grade, examine_each
from specscope_collectors.finding import lacking, ok
from specscope_collectors.preview import Look, preview
from specscope_server.cli.collecting import COLLECT_ERRORS, is_empty, plan_of
from specscope_server.kit.errors import InvalidInput
from specscope_server.settings import load_settings

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
Config = Annotated[
    Path | None,
    typer.Option(help="Collectors' file: look at all servers that it names, and at its discoveries."),
]


@app.command()
def run(
    watch: Watch = None,
    api_key: ApiKey = None,
    output: OutputFormat = Format.TEXT,
    scrape_timeout_seconds: Timeout = None,
    tls_verify: TlsVerify = None,
    ca_file: CaFile = None,
    config: Config = None,
) -> None:
    """Look at servers once. Exit status: 0 all can be seen, 1 something is missing, 2 nothing can."""
    flags = {  # one that was not given leaves the setting as it is
        "watch": watch or None,
        "scrape_timeout_seconds": scrape_timeout_seconds,
        "tls_verify": tls_verify,
        "ca_file": ca_file,
        "collect": config,
    }
    try:
        settings = load_settings(flags)
        plan = plan_of(settings, api_key)
        if is_empty(plan):
            raise InvalidInput("no server to look at; name one: specscope doctor --watch http://HOST:30000")
        seen = preview(plan)
        found = examine_each([(each.target, each.options) for each in seen.targets])
        found += [diagnosis_of(look) for look in seen.looks]
    except (InvalidInput, *COLLECT_ERRORS) as error:
        typer.echo(f"specscope doctor: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    if output is Format.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print_text(found, Console(soft_wrap=True, highlight=False))
    raise typer.Exit(max((diagnosis.exit_status for diagnosis in found), default=0))


def diagnosis_of(look: Look) -> Diagnosis:
    """Return what was found at a discovery, in the form of what is found at servers."""
    findings = [lacking("list", words, "correct the list there") for words in look.refused]
    if look.error:
        findings.append(Finding(grade=Grade.BAD, subject="list", words=look.error))
    elif look.found:
        findings.insert(0, ok("list", servers(len(look.found))))
    else:
        findings.append(lacking("list", "empty", "list servers there"))
    status = 2 if look.error else int(any(finding.grade is not Grade.OK for finding in findings))
    return Diagnosis(target=look.name, url="", findings=tuple(findings), exit_status=status)


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
