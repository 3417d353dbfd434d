"""`specscope reference boundaries`: what layer ids mean, without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from specscope_collectors.layer_ids import Question, Resolved, System, as_list, resolve
from specscope_collectors.layer_ids.sglang import family_of
from specscope_collectors.layer_ids.versions import text_of
from specscope_collectors.references.document import read_reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.texts import plain
from specscope_collectors.references.walking import beginning_of, check_exists
from specscope_collectors.sources.sglang_info.checkpoint_files import IDS, facts
from specscope_server.boundaries.statistics import as_text, difference

MAX_CONFIG_BYTES = 4 << 20
_IDS = re.compile(r"-?[0-9]{1,4}(,-?[0-9]{1,4})*", re.ASCII)

Ids = Annotated[str | None, typer.Option(help="Layer ids, e.g. 2,30,58.")]
SystemName = Annotated[System, typer.Option(help="Whose ids they are.")]
Version = Annotated[str | None, typer.Option(help="Version of the engine or tool; without it, every rule.")]
ModelClass = Annotated[str | None, typer.Option(help="Class of the target, e.g. DeepseekV3ForCausalLM.")]
Layers = Annotated[int | None, typer.Option(min=1, max=4_096, help="Decoder layers of the target.")]
DraftConfig = Annotated[Path | None, typer.Option(help="config.json of the draft, for its layer ids.")]
ModelConfig = Annotated[Path | None, typer.Option(help="config.json of the target, for class and layers.")]
ReferenceFile = Annotated[Path | None, typer.Option(help="Reference of the training dump, to compare with.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def boundaries(
    ids: Ids = None, system: SystemName = System.SGLANG, engine_version: Version = None,
    model_class: ModelClass = None, layers: Layers = None, draft_config: DraftConfig = None,
    model_config: ModelConfig = None, reference: ReferenceFile = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Say which boundaries layer ids mean, by which rule, and whether the draft was trained on them. Without
    --ids and --draft-config: the default layers. Exit status: 0 told, 1 they disagree with the reference,
    2 wrong usage.
    """
    draft = _config(draft_config) if draft_config else {}
    model = _config(model_config) if model_config else {}
    named = _numbers(ids) or (tuple(draft[IDS]) if IDS in draft else None)
    asked_class = model_class or next(iter(model.get("architectures", [])), None)
    depth = layers or model.get("num_hidden_layers")
    if reference is not None:
        check_exists(reference)
    trained = read_reference(reference).boundaries if reference is not None else None
    found = [
        (version, resolve(
            Question(system=system, ids=named, version=version, model_class=asked_class, layers=depth)
        ))
        for version in _versions(system, engine_version, asked_class)
    ]  # fmt: skip
    apart = [_apart(trained, each) for _, each in found]
    if as_json:
        typer.echo(json.dumps({"trained": trained, "answers": list(_documents(found, apart))}, indent=1))
    else:
        for line in _lines(found, trained, apart):
            typer.echo(plain(line))
    if any(apart):
        raise typer.Exit(1)


def _versions(system: System, told: str | None, model_class: str | None) -> list[str | None]:
    """Return the version asked for, else one of each rule that the class had."""
    family = family_of(model_class) if system is System.SGLANG else None
    if told or family is None or len(family.eras) == 1:
        return [told]
    return [text_of(family.eras[0].last), *(text_of(era.first) for era in family.eras[1:])]


def _apart(trained: tuple[int | None, ...] | None, found: Resolved) -> str:
    if trained is None or found.boundaries is None:
        return ""
    return difference(trained, found.boundaries)


def _documents(found: list[tuple[str | None, Resolved]], apart: list[str]) -> Iterator[dict[str, Any]]:
    for (version, each), words in zip(found, apart, strict=True):
        yield {
            "version": version, "ids": each.ids, "boundaries": each.boundaries, "rule": each.rule,
            "source": each.source, "reason": each.reason, "notes": each.notes,
            "is_default": each.is_default, "candidates": each.candidates, "difference": words,
        }  # fmt: skip


def _lines(
    found: list[tuple[str | None, Resolved]], trained: tuple[int | None, ...] | None, apart: list[str]
) -> Iterator[str]:
    if trained is not None:
        yield f"trained on {as_text(trained)}"
    for (version, each), words in zip(found, apart, strict=True):
        ids = "no ids" if each.ids is None else as_list(each.ids)
        when = f" in {version}" if version else ""
        told = as_list(each.boundaries) if each.boundaries is not None else f"cannot be told: {each.reason}"
        yield f"{ids}{when} → {told}"
        if each.rule:
            yield f"    rule  {each.rule} ({each.source})"
        yield from (f"    note  {note}" for note in each.notes)
        if words:
            yield f"    differs from training: {words}"


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    listed = text.strip().removeprefix("[").removesuffix("]").replace(" ", "")
    if not _IDS.fullmatch(listed):
        raise typer.BadParameter(f"{text[:60]!r} is no list of layer ids; write 2,30,58", param_hint="--ids")
    return tuple(int(each) for each in listed.split(","))


def _config(path: Path) -> dict[str, Any]:
    """Return what a configuration says of layers. Raises DumpError."""
    check_exists(path)
    place = path / "config.json" if path.is_dir() else path
    content = beginning_of(place, MAX_CONFIG_BYTES + 1)
    try:
        if len(content) > MAX_CONFIG_BYTES:
            raise DumpError(f"{place} has over {MAX_CONFIG_BYTES} bytes: no configuration of a model")
        return facts(msgspec.json.decode(content, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DumpError(f"{place} is no JSON object; give the config.json of a checkpoint") from None
