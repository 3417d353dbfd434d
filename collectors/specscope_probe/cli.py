"""``specscope probe check``: what the probe would measure in the SGLang of this environment."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points

from specscope_probe.conformance import Conformance, WorkerReport, examine
from specscope_probe.info import simulated_accept_length
from specscope_probe.loading import SWITCH
from specscope_probe.seams import PLACES
from specscope_probe.source_tree import NotInstalledError, installed

FORWARD_HOOKS = (
    '--forward-hooks \'[{"name": "specscope", "target_modules": ["*"], '
    '"hook_factory": "specscope_probe.loading:forward_hook"}]\''
)

CONFORMS, DOES_NOT_CONFORM, NO_ENGINE = 0, 1, 3


def main(argv: list[str] | None = None) -> int:
    """Run ``specscope probe …``; 0: everything promised is measured, 1: something is not, 3: no SGLang."""
    options = _parser().parse_args(argv)
    try:
        found = examine(installed())
    except NotInstalledError as reason:
        print(f"specscope probe check: {reason}", file=sys.stderr)
        return NO_ENGINE
    advice = _advice(found, os.environ)
    if options.format == "json":
        print(json.dumps(dataclasses.asdict(found) | {"advice": advice}, indent=2))
    else:
        print(_text(found, advice))
    return DOES_NOT_CONFORM if found.problems else CONFORMS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="specscope probe", description="The probe inside SGLang.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check", help="say what would be measured in the SGLang of this environment", description=__doc__
    )
    check.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _advice(found: Conformance, environment: Mapping[str, str]) -> list[str]:
    """Return what to do so that the next start of the engine carries the probe."""
    advice = []
    if environment.get(SWITCH) != "1":
        advice.append(f"the probe is off here: start SGLang with {SWITCH}=1, and with --enable-metrics")
    if "plugin" not in found.loaders and "forward-hooks" in found.loaders:
        advice.append(f"this version has no plugins; start SGLang with {FORWARD_HOOKS}")
    allowed = environment.get("SGLANG_PLUGINS")
    if allowed and "specscope" not in [name.strip() for name in allowed.split(",")]:
        advice.append(f"SGLANG_PLUGINS={allowed} leaves specscope out; add it")
    if "plugin" in found.loaders and not entry_points(group="sglang.srt.plugins", name="specscope"):
        advice.append("the entry point is not visible to this Python; install specscope beside SGLang")
    if simulated_accept_length(environment):
        advice.append("SGLANG_SIMULATE_ACC_LEN is set: accepted drafts are made up and not counted")
    return advice


def _text(found: Conformance, advice: list[str]) -> str:
    lines = [
        f"SGLang {found.version}",
        f"  loaded by      {', '.join(found.loaders) or 'nothing'}",
        f"  attaches at    {', '.join(found.loops) or 'nothing'}",
    ]
    for worker in found.workers:
        lines += ["", *_worker_text(worker)]
    lines += ["", *(f"PROBLEM  {problem}" for problem in found.problems)]
    lines += [f"NOTE     {each}" for each in advice]
    lines.append(_last_words(found, advice))
    return "\n".join(lines)


def _last_words(found: Conformance, advice: list[str]) -> str:
    if found.problems:
        return "NOT everything is measured"
    return "everything promised is measured" + (", once the notes are heeded" if advice else "")


def _worker_text(worker: WorkerReport) -> list[str]:
    lines = [worker.worker + (f"  ({worker.note})" if worker.note else "")]
    for place in PLACES:
        carrier = worker.seams.get(place.name)
        where = carrier or f"not measured: {worker.missing[place.name]}"
        lines.append(f"  {'yes' if carrier else 'no ':3}  {place.measures:62}  {where}")
    return lines
