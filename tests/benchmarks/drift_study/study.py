"""Count alarms of every rule, on healthy windows and on windows with a fault."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.benchmarks.drift_study.pools import QUANTISED, SEEN_DOMAINS, UNSEEN_DOMAINS, Pool, pool
from tests.benchmarks.drift_study.reference import reference_bank
from tests.benchmarks.drift_study.windows import CELLS, Cell, Floats, Rows, captured, drawn, windows

from specscope_collectors.states import distances
from specscope_collectors.states.bank import Bank, Scores
from specscope_collectors.states.rules import GROSS_DIRECTION, GROSS_NORM, Fault, Judged, judge, ranked, vote
from specscope_collectors.states.sums import Sums

SLOTS = (2, 15, 27)
FULL = CELLS[1]
NULL_WINDOWS, FAULT_WINDOWS, IDENTIFIED_WINDOWS = 400, 200, 20
RATIO = 1.05
RULES = (
    "verdict", "verdict, 2 of 3 windows", "boundary: both statistics", "boundary: vcos alone",
    "boundary: vcos alone, ratio > 1.05", "boundary: dnll alone", "boundary: dnll with own variances alone",
    "gross norm", "gross direction",
    "W1 > 99.9 % of seen", "PSI > 99.9 % of seen", "KS > 99.9 % of seen",
)  # fmt: skip
TRENDS = RULES[-3:]


@dataclass(frozen=True)
class Counted:
    """Alarms among windows."""

    alarms: int
    windows: int


@dataclass
class Found:
    """All counts of one reference. Keys begin with the rule, or the fault."""

    null: dict[tuple[str, str, str], Counted] = field(default_factory=dict)
    """(rule, pool, cell) → windows in which any of the slots alarms."""
    quantised: dict[tuple[str, str, str], Counted] = field(default_factory=dict)
    """(rule, variant, cell)."""
    power: dict[tuple[str, str, int, str], Counted] = field(default_factory=dict)
    """(fault, pool, slot, cell) → windows in which it is told, with the right boundary if it has one."""
    by_ratio: dict[tuple[str, str, int, str], Counted] = field(default_factory=dict)
    """The same by vcos alone, with a runner-up ratio over `RATIO`."""
    not_enough: dict[tuple[str, str], Counted] = field(default_factory=dict)
    """(pool, cell) → windows that may not speak of boundaries."""
    identified: dict[str, Counted] = field(default_factory=dict)
    """Pool → boundaries named exactly by both statistics, of those that both name."""
    named: dict[str, Counted] = field(default_factory=dict)
    """Pool → windows in which both name the same."""
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Pool → (requests, rows)."""


class Study:
    """One reference against all pools."""

    def __init__(self, folder: Path, domains: tuple[str, ...], norm_weight: Floats) -> None:
        self.folder = folder
        self.bank: Bank = reference_bank(folder, domains)
        self.norm_weight = norm_weight
        self.found = Found()
        self._limits: dict[tuple[str, int], float] = {}
        self._cache: dict[tuple[Path, int, str], Rows] = {}

    def run(self, *, is_whole: bool = True) -> Found:
        """Count everything; or, if not whole, only alarms, offsets by one and names at 256/32."""
        cells = CELLS if is_whole else (FULL,)
        self._set_limits()
        for number, name in enumerate((*SEEN_DOMAINS, *UNSEEN_DOMAINS)):
            own = pool(self.folder, name)
            requests = own.arrays["requests"]
            self.found.sizes[name] = (len(np.unique(requests)), len(requests))
            self._cache.clear()
            for cell in cells:
                self._null(own, cell, number)
                for fault, shift in (("+1", 1), ("−1", -1)):
                    self._power(own, cell, number, fault, tuple(b + shift for b in SLOTS))
            self._identify(own, number)
            if name in SEEN_DOMAINS and is_whole:
                self._gross(own, number)
        for variant in QUANTISED[1:] if is_whole else ():
            self._quantised(variant)
        return self.found

    def _rows(self, own: Pool, boundary: int, fault: str = "") -> Rows:
        key = (own.path, boundary, fault)
        if key not in self._cache:
            states = captured(own, boundary, fault, self.norm_weight)
            self._cache[key] = Rows(own, states, self.bank.token_ids)
        return self._cache[key]

    def _judged(self, rows: Rows, claimed: int, taken: Floats) -> Iterator[tuple[Sums, Judged]]:
        for window, both in self._scored(windows(rows, taken)):
            yield window, judge(window, self.bank, claimed, self.bank.sums[claimed], both)

    def _scored(self, made: list[Sums]) -> Iterator[tuple[Sums, tuple[Scores, Scores]]]:
        """Yield windows with vcos and dnll."""
        scores = zip(self.bank.vcos_of(made), self.bank.dnll_of(made), strict=True)
        yield from zip(made, scores, strict=True)

    def _set_limits(self) -> None:
        """Thresholds of the distances as they would be set on domains of the reference: the 99.9 % point."""
        for slot in SLOTS:
            seen = defaultdict(list)
            for number, name in enumerate(SEEN_DOMAINS):
                rows = self._rows(pool(self.folder, name), slot)
                for window in windows(rows, drawn([rows], FULL, NULL_WINDOWS, 100 + number)):
                    for rule, value in _trends(window, self.bank.sums[slot]).items():
                        seen[rule].append(value)
            for rule, values in seen.items():
                self._limits[rule, slot] = float(np.quantile(values, 0.999))

    def _alarms(self, window: Sums, judged: Judged, slot: int) -> set[str]:
        """Return which rules alarm on one window."""
        boundary = Fault.WRONG_BOUNDARY
        rules = {
            "verdict": judged.fault != Fault.NONE,
            "boundary: both statistics": judged.fault == boundary,
            "boundary: vcos alone": not judged.missing and judged.vcos.best != slot,
            "boundary: vcos alone, ratio > 1.05": _by_ratio(judged, slot) is not None,
            "boundary: dnll alone": not judged.missing and judged.dnll.best != slot,
            "boundary: dnll with own variances alone": not judged.missing
            and ranked(self.bank.own_dnll(window).distances).best != slot,
            "gross norm": judged.gross_norm is not None and judged.gross_norm > GROSS_NORM,
            "gross direction": judged.gross_direction is not None
            and judged.gross_direction > GROSS_DIRECTION,
        }
        trends = _trends(window, self.bank.sums[slot])
        rules |= {rule: value > self._limits[rule, slot] for rule, value in trends.items()}
        return {rule for rule, is_alarm in rules.items() if is_alarm}

    def _healthy(self, own: Pool, cell: Cell, seed: int) -> Counter[str]:
        """Return in how many windows each rule alarms in any slot."""
        alarms: list[set[str]] = [set() for _ in range(NULL_WINDOWS)]
        judgements: dict[int, list[Judged]] = defaultdict(list)
        missing = 0
        taken = drawn([self._rows(own, slot) for slot in SLOTS], cell, NULL_WINDOWS, seed)
        for slot in SLOTS:
            for index, (window, judged) in enumerate(self._judged(self._rows(own, slot), slot, taken)):
                alarms[index] |= self._alarms(window, judged, slot)
                judgements[slot].append(judged)
                missing += bool(judged.missing)
        for index in range(2, NULL_WINDOWS):
            if any(vote(each[index - 2 : index + 1]).is_confirmed for each in judgements.values()):
                alarms[index].add("verdict, 2 of 3 windows")
        self.found.not_enough[own.path.stem, str(cell)] = Counted(missing, NULL_WINDOWS * len(SLOTS))
        return Counter(rule for each in alarms for rule in each)

    def _null(self, own: Pool, cell: Cell, seed: int) -> None:
        counts = self._healthy(own, cell, seed)
        for rule in RULES:
            self.found.null[rule, own.name, str(cell)] = Counted(counts[rule], NULL_WINDOWS)

    def _quantised(self, variant: str) -> None:
        counts: Counter[str] = Counter()
        for number, name in enumerate(SEEN_DOMAINS):
            counts += self._healthy(pool(self.folder, name, variant), FULL, 200 + number)
        for rule in RULES:
            total = Counted(counts[rule], NULL_WINDOWS * len(SEEN_DOMAINS))
            self.found.quantised[rule, variant, str(FULL)] = total

    def _power(
        self, own: Pool, cell: Cell, seed: int, fault: str, boundaries: tuple[int, ...], kind: str = ""
    ) -> None:
        """``boundaries`` are captured where `SLOTS` were trained on."""
        for slot, boundary in zip(SLOTS, boundaries, strict=True):
            if boundary == slot and not kind:
                continue  # swapping leaves the middle one
            rows = self._rows(own, boundary, kind)
            taken = drawn([rows], cell, FAULT_WINDOWS, 300 + seed)
            told = by_ratio = 0
            for _, judged in self._judged(rows, slot, taken):
                is_named = judged.fault == Fault.WRONG_BOUNDARY and judged.place == boundary
                told += (judged.fault != Fault.NONE) if kind else is_named
                by_ratio += _by_ratio(judged, slot) == boundary
            self.found.power[fault, own.name, slot, str(cell)] = Counted(told, FAULT_WINDOWS)
            if not kind:
                self.found.by_ratio[fault, own.name, slot, str(cell)] = Counted(by_ratio, FAULT_WINDOWS)

    def _gross(self, own: Pool, seed: int) -> None:
        cell = FULL
        self._power(own, cell, seed, "embedding in slot 0", (0, 2, 15))
        self._power(own, cell, seed, "slots swapped", (27, 15, 2))
        for kind in ("rotated", "residual missing", "post-norm"):
            self._power(own, cell, seed, kind, SLOTS, kind)

    def _identify(self, own: Pool, seed: int) -> None:
        """Every boundary in turn is captured: which one do both statistics name?"""
        exact = named = 0
        for boundary in range(len(self.bank.places)):
            rows = self._rows(own, boundary)
            made = windows(rows, drawn([rows], FULL, IDENTIFIED_WINDOWS, 400 + seed))
            for window, both in self._scored(made):
                agree = judge(window, self.bank, None, None, both).agree
                named += agree is not None
                exact += agree == boundary
        self.found.identified[own.name] = Counted(exact, named)
        self.found.named[own.name] = Counted(named, IDENTIFIED_WINDOWS * len(self.bank.places))


def _by_ratio(judged: Judged, claimed: int) -> int | None:
    """Return the wrong place that vcos alone names, where the claimed one is clearly farther."""
    best, distance = judged.vcos.best, judged.vcos.distance(claimed)
    least = judged.vcos.distance(best)
    if judged.missing or best is None or best == claimed or distance is None or least is None:
        return None
    return best if distance > RATIO * least else None


def _trends(window: Sums, profile: Sums) -> dict[str, float]:
    return {
        TRENDS[0]: distances.w1(window.norms, profile.norms),
        TRENDS[1]: distances.psi(window.norms, profile.norms),
        TRENDS[2]: distances.ks(window.norms, profile.norms),
    }
