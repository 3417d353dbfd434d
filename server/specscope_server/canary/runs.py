"""Runs of a canary from its answers (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from specscope_server.canary.reading import Asked
from specscope_server.canary.schemas import CanaryRun
from specscope_server.kit.timeparse import to_iso


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over answers; cycles 0 = the engine counted none."""

    cycles: int
    accepted: int

    @property
    def accept_length(self) -> float | None:
        """Return τ, or None without cycles."""
        return 1 + self.accepted / self.cycles if self.cycles else None


def counts_of(answers: Iterable[Asked]) -> Counts:
    """Return the sums over the answers that say both."""
    both = [(each.cycles, each.accepted) for each in answers if each.cycles and each.accepted is not None]
    return Counts(sum(cycles for cycles, _ in both), sum(accepted for _, accepted in both))


def seconds_of(answers: Iterable[Asked]) -> float | None:
    """Return the median time of the answers."""
    known = [each.e2e_seconds for each in answers if each.e2e_seconds]
    return median(known) if known else None


def by_run(answers: Iterable[Asked]) -> dict[tuple[str, int], list[Asked]]:
    """Return (set, run) → its answers, oldest run first."""
    found: dict[tuple[str, int], list[Asked]] = {}
    for each in answers:
        found.setdefault((each.prompt_set, each.run_ms), []).append(each)
    return dict(sorted(found.items(), key=lambda item: item[0][1]))


def runs_of(answers: Iterable[Asked]) -> list[CanaryRun]:
    """Return the runs, newest first, each with what changed since the run before of the same set."""
    outputs: dict[str, dict[str, str]] = {}
    found = []
    for (prompt_set, run_ms), asked in by_run(answers).items():
        before, now = outputs.get(prompt_set), {each.prompt: each.output for each in asked}
        changed = None if before is None else sum(before.get(name, out) != out for name, out in now.items())
        outputs[prompt_set] = {**(before or {}), **now}
        found.append(_run(prompt_set, run_ms, asked, changed))
    return found[::-1]


def _run(prompt_set: str, run_ms: int, asked: Sequence[Asked], changed: int | None) -> CanaryRun:
    counts = counts_of(asked)
    own = [length for each in asked if (length := counts_of([each]).accept_length) is not None]
    launches = {each.launch_id for each in asked}
    return CanaryRun(
        run=run_ms,
        time=to_iso(run_ms),
        launch_id=launches.pop() if len(launches) == 1 else None,
        prompt_set=prompt_set,
        prompts=len(asked),
        cycles=counts.cycles or None,
        accepted_drafts=counts.accepted if counts.cycles else None,
        accept_length=counts.accept_length,
        request_mean_accept_length=fmean(own) if own else None,
        e2e_seconds=seconds_of(asked),
        outputs_changed=changed,
    )
