"""What a canary remembers between runs, kept with each batch."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specscope_collectors.observations import CanaryLabel, Event, RequestRecord

CHANGED = "canary_output_changed"
MAX_OUTPUTS = 8
"""Outputs remembered of a prompt: batching may flip a near tie back and forth, which is no news."""
NAMES_SHOWN = 20


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """State after the last stored run."""

    fingerprint: str = ""
    """Of the prompt set; another set begins anew."""
    last_run_ms: int = 0
    launch_key: str = ""
    outputs: dict[str, tuple[str, ...]] = {}
    """Prompt → hashes of the outputs that it has had, newest last."""


def decode(checkpoint: bytes | None, fingerprint: str) -> Memory:
    """Return what was remembered of this set; an empty memory for another set or an unreadable one."""
    try:
        memory = msgspec.msgpack.decode(checkpoint or b"", type=Memory)
    except msgspec.MsgspecError:
        return Memory(fingerprint)
    return memory if memory.fingerprint == fingerprint else Memory(fingerprint)


def after_run(
    memory: Memory, records: Sequence[RequestRecord], started_ms: int, launch_key: str
) -> tuple[Memory, list[Event]]:
    """Return the memory after a run, and an event if prompts gave outputs that they never gave before."""
    outputs = dict(memory.outputs)
    changed = []
    for record in records:
        prompt, output = record.labels[CanaryLabel.PROMPT], record.labels[CanaryLabel.OUTPUT]
        before = outputs.get(prompt, ())
        if before and output not in before:
            changed.append(prompt)
        outputs[prompt] = (*(each for each in before if each != output), output)[-MAX_OUTPUTS:]
    after = Memory(memory.fingerprint, started_ms, launch_key, outputs)
    return after, [_event(changed, len(records), started_ms, memory, launch_key)] if changed else []


def _event(changed: Sequence[str], of: int, started_ms: int, before: Memory, launch_key: str) -> Event:
    restarted = before.launch_key != launch_key
    since = "since the server was launched anew" if restarted else "within one launch"
    return Event(
        kind=CHANGED,
        time_ms=started_ms,
        message=f"{len(changed)} of {of} canary prompts gave an output never seen before, {since}",
        detail={"prompts": sorted(changed)[:NAMES_SHOWN], "changed": len(changed), "of": of},
    )
