"""Keeps the books while a log is read: per launch and rank, and what decides the rate's definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specscope_collectors.observations import Event, Launch
from specscope_collectors.sources.sglang_log.levels import ACCEPT_LENGTH, RATE, RUNNING, THROUGHPUT
from specscope_collectors.sources.sglang_log.lines import Status
from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.rate_definition import NONE, RatePairs
from specscope_collectors.sources.sglang_log.summary import LaunchSummary, RankSummary, Summary

if TYPE_CHECKING:  # numpy comes with the server only
    from specscope_collectors.sources.sglang_log.runs import Run

MAX_LAUNCHES, MAX_RANKS = 1_000, 4_096


@dataclass(slots=True)
class Accounts:
    """Fills a `Summary`."""

    summary: Summary
    pairs: dict[str, RatePairs] = field(default_factory=dict)
    """Launch key → pairs of accept length and rate, of leaders."""
    told: dict[str, int | None] = field(default_factory=dict)
    last_ms: dict[str, int] = field(default_factory=dict)
    current: LaunchSummary | None = None

    def begin(self, launch: Launch) -> None:
        """A launch begins; what follows belongs to it."""
        speculative = launch.speculative
        self.current = LaunchSummary(
            launch.key,
            launch.time_ms,
            launch.reason,
            launch.served_model_name or launch.model,
            speculative.algorithm,
            speculative.num_draft_tokens,
        )
        if len(self.summary.launches) < MAX_LAUNCHES:
            self.summary.launches.append(self.current)
        else:
            self.summary.further_launches += 1
        self.pairs[launch.key] = RatePairs()
        self.told[launch.key] = None if speculative.adaptive else speculative.num_draft_tokens
        self.summary.saw(launch.time_ms)

    def add(self, status: Status, *, is_leader: bool) -> None:
        """Note one status line."""
        summary, launch = self.summary, self.current
        assert launch is not None
        summary.decode_lines += status.is_decode
        summary.prefill_lines += not status.is_decode
        summary.cut_lines += status.is_cut
        summary.saw(status.time_ms)
        self.last_ms[launch.key] = status.time_ms
        if status.form:
            summary.forms[status.form] += 1
        self._add_to_rank(launch, status)
        length, rate = status.values.get(ACCEPT_LENGTH), status.values.get(RATE)
        if is_leader and length is not None and rate is not None:
            self.pairs[launch.key].add(length, rate)

    def _add_to_rank(self, launch: LaunchSummary, status: Status) -> None:
        rank = launch.ranks.get(status.rank)
        if rank is None:
            if len(launch.ranks) >= MAX_RANKS:
                return
            rank = launch.ranks[status.rank] = RankSummary()
        rank.decode_lines += status.is_decode
        rank.prefill_lines += not status.is_decode
        length = status.values.get(ACCEPT_LENGTH)
        if not status.is_decode or length is None:
            return
        rank.accept_length.add(length)
        running, throughput = (status.values.get(name, 0.0) for name in (RUNNING, THROUGHPUT))
        if running > 0 and throughput > 0:
            rank.cycles_per_second.add(throughput / (length * running))

    def add_run(self, run: Run, times_ms: list[int], is_leader: list[bool]) -> None:
        """Note the lines of a run; ``is_leader`` by index of the rank."""
        launch = self.current
        assert launch is not None
        self.summary.saw(min(times_ms))
        self.summary.saw(max(times_ms))
        self.last_ms[launch.key] = times_ms[-1]
        for part in run.parts:
            count, form = len(part.lines), part.form
            self.summary.decode_lines += count * form.is_decode
            self.summary.prefill_lines += count * (not form.is_decode)
            if form.written_as:
                self.summary.forms[form.written_as] += count
        for at in sorted(set(run.of_rank.tolist())):
            if run.ranks[at] in launch.ranks:
                _add_run(launch.ranks[run.ranks[at]], run, at)
            if is_leader[at]:
                self.pairs[launch.key].add_all(*run.told_together(at, ACCEPT_LENGTH, RATE))

    def conclude(self) -> list[Event]:
        """Decide the definition of the launch that ends here; return the event that says it, if any."""
        launch = self.current
        if launch is None or launch.key not in self.last_ms:
            return []
        launch.definition = self.pairs[launch.key].decide(self.told[launch.key])
        return [] if launch.definition.definition == NONE else [self._event(launch)]

    def count_mirrors(self) -> None:
        """Tell leaders from mirrors, now that all ranks are known."""
        mirrors = [found for launch in self.summary.launches for found in mark_mirrors(launch.ranks)]
        self.summary.mirror_lines = sum(found.decode_lines + found.prefill_lines for found in mirrors)

    def _event(self, launch: LaunchSummary) -> Event:
        decision = launch.definition
        assert decision is not None
        return Event(
            kind="rate_definition",
            time_ms=self.last_ms[launch.key],
            message=f"The engine's printed accept rate is {decision.definition}: {decision.reason}",
            detail={
                "definition": decision.definition,
                "draft_tokens": decision.draft_tokens,
                "pairs": decision.pairs,
                "source": "log",
            },
        )


def _add_run(rank: RankSummary, run: Run, at: int) -> None:
    for part in run.parts:
        count = int((part.of_rank == at).sum())
        rank.decode_lines += count * part.form.is_decode
        rank.prefill_lines += count * (not part.form.is_decode)
    (length,) = run.told_together(at, ACCEPT_LENGTH)
    rank.accept_length.add_all(length)
    of_all = run.told_together(at, ACCEPT_LENGTH, RUNNING, THROUGHPUT)
    is_cycling = (of_all[1] > 0) & (of_all[2] > 0)
    length, running, throughput = (values[is_cycling] for values in of_all)
    rank.cycles_per_second.add_all(throughput / (length * running))


def mark_mirrors(ranks: dict[Rank, RankSummary]) -> list[RankSummary]:
    """Mark and return the ranks that print what a lower rank of their data-parallel group prints."""
    lowest: dict[int | None, Rank] = {}
    for rank in ranks:
        if rank.dp not in lowest or rank.place < lowest[rank.dp].place:
            lowest[rank.dp] = rank
    for rank, found in ranks.items():
        found.is_mirror = lowest[rank.dp].place != rank.place
    return [found for found in ranks.values() if found.is_mirror]
