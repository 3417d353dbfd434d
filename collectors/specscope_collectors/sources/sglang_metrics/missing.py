"""What cannot be seen of an SGLang, and how to turn it on."""

from __future__ import annotations

import re

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.table import RANK_LABELS
from specscope_collectors.observations import Launch
from specscope_collectors.sources.sglang_info.launch import expected_ranks, expected_reporters

VERIFY_CALLS_SINCE = (0, 5, 15)
DEVICE_TIMER_SINCE = (0, 5, 8)
RANKS_SINCE = (0, 5, 2)


def missing_of(mapped: Mapped, launch: Launch | None) -> dict[str, str]:
    """Return what cannot be seen → what to do about it. Without a launch only what the metrics alone show."""
    seen = {metric for metric, _ in (*mapped.counters, *mapped.levels)}
    version = version_tuple(launch.engine_version if launch else mapped.version_from_metric_set)
    is_guess = launch is None or launch.version_source == "metric_names"
    missing: dict[str, str] = {}
    if version is None or version >= DEVICE_TIMER_SINCE:
        if "time.forward" not in seen:
            missing["device time of draft and verify"] = (
                "set SGLANG_ENABLE_METRICS_DEVICE_TIMER=1 in the server's environment"
            )
    else:
        missing["device time of draft and verify"] = _upgrade(DEVICE_TIMER_SINCE, "measure it", is_guess)
    if launch is not None:
        missing |= _ranks(mapped, launch, version)
        missing |= _speculation(seen, launch, version)
    return missing


def _ranks(mapped: Mapped, launch: Launch, version: tuple[int, ...] | None) -> dict[str, str]:
    reporting = reporters(mapped)
    wanted, leaders = expected_ranks(launch.parallelism), expected_reporters(launch.parallelism)
    if version is not None and version < RANKS_SINCE:
        is_guess = launch.version_source == "metric_names"
        return {"single ranks": _upgrade(RANKS_SINCE, "label ranks", is_guess)} if wanted > 1 else {}
    if not reporting or reporting >= wanted:
        return {}
    if reporting < leaders:
        remedy = "they appear with their first requests; if not, look into the server's log"
        return {f"{leaders - reporting} of {leaders} data-parallel ranks": remedy}
    remedy = "start SGLang with --enable-metrics-for-all-schedulers (only the leaders report without it)"
    return {f"gauges of {wanted - reporting} of {wanted} ranks": remedy}


def _speculation(seen: set[str], launch: Launch, version: tuple[int, ...] | None) -> dict[str, str]:
    if launch.version_source == "server_info" and launch.speculative.algorithm is None:
        return {
            "speculative decoding": "off in this launch; start SGLang with --speculative-algorithm EAGLE3"
        }
    missing = {}
    if version is not None and version < VERIFY_CALLS_SINCE:
        is_guess = launch.version_source == "metric_names"
        remedy = _upgrade(VERIFY_CALLS_SINCE, "count verify calls", is_guess)
        missing["verify calls (exact accept length)"] = remedy
    elif launch.speculative.algorithm and "spec.verify_calls" not in seen:
        missing["verify calls (exact accept length)"] = "none finished yet; send a request"
    if launch.speculative.algorithm and "spec.accept_length" not in seen:
        steps = launch.config.get("decode_log_interval", 40)
        missing["accept length of a log window"] = (
            f"no window has ended yet; it takes {steps} decode steps (--decode-log-interval)"
        )
    return missing


def _upgrade(since: tuple[int, ...], what: str, is_guess: bool) -> str:
    """Return the remedy; a version told from metric names is the oldest that fits: it may be new enough."""
    version = ".".join(map(str, since))
    return f"SGLang {version} and later {what}" if is_guess else f"upgrade SGLang to {version} or later"


def reporters(mapped: Mapped) -> int:
    """Return how many schedulers publish gauges."""
    return len(
        {
            tuple(pair for pair in labels if pair[0] in RANK_LABELS)
            for metric, labels in mapped.levels
            if metric == "requests.running"
        }
    )


def version_tuple(version: str | None) -> tuple[int, ...] | None:
    """Return ``(0, 5, 23)`` of ``0.5.23.post1``; None when it does not begin with numbers."""
    match = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(int(part[:9]) for part in match[0].split(".")) if match else None
