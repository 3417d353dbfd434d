"""What cannot be seen of a vLLM, and how to turn it on."""

from __future__ import annotations

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.finding import Finding, lacking, ok
from specscope_collectors.sources.vllm_metrics.speculation import ACCEPTED, CYCLES, PROPOSED, split

TURN_ON = "start vLLM with --speculative-config (method, model, num_speculative_tokens)"
V0_COUNTS = (
    "vLLM's V0 engine adds running totals to its counters again and again; use the V1 engine (VLLM_USE_V1=1, "
    "the only one from 0.11 on), or import its log, which prints the totals themselves"
)
DEVICE_TIME = "vLLM does not publish it"


def missing_of(mapped: Mapped) -> dict[str, str]:
    """Return what cannot be seen → what to do about it."""
    missing = {"device time of draft and verify": DEVICE_TIME}
    counted = {metric for metric, _ in mapped.counters}
    if _is_v0(mapped):
        missing["counts of drafts (exact accept length)"] = V0_COUNTS
    elif not counted & {CYCLES, PROPOSED, ACCEPTED}:
        if not mapped.refused:
            missing["speculative decoding"] = f"not counted, so it is off in this launch; {TURN_ON}"
    elif CYCLES not in counted:
        missing["cycles (accept length)"] = (
            "the first versions of the V1 engine do not count them: upgrade vLLM"
        )
    elif not _depths(mapped):
        missing["acceptance by draft position"] = "this version does not count it: upgrade vLLM"
    return missing


def findings_of(mapped: Mapped | None) -> list[Finding]:
    """Return speculation and ranks."""
    if mapped is None:
        return []
    found = []
    depths = _depths(mapped)
    if depths:
        found.append(ok("speculation", f"K = {max(depths)} drafts per cycle, counted by draft position"))
    elif any(metric == CYCLES for metric, _ in mapped.counters) or _is_v0(mapped):
        found.append(ok("speculation", "on"))
    elif not mapped.refused:
        found.append(lacking("speculation", "not counted, so it is off in this launch", TURN_ON))
    ranks = {labels for metric, labels in mapped.levels if metric == "requests.running"}
    return [*found, ok("ranks", f"{len(ranks)} report")] if ranks else found


def _is_v0(mapped: Mapped) -> bool:
    return any(metric.startswith("spec.lifetime_") for metric, _ in mapped.levels)


def _depths(mapped: Mapped) -> set[int]:
    return {split(labels)[0] for metric, labels in mapped.counters if metric == ACCEPTED} - {0}
