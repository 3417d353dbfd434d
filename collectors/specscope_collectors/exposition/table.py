"""How raw metric names become canonical metrics: the form of an engine's table.

Names in a table have no prefix. An engine writes ``engine:name``; a router that aggregates its workers, and
every system that forbids colons, writes ``engine_name``. Both are read (`Table.prefixes`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specscope_collectors.catalogue import CATALOGUE, Across, Kind
from specscope_collectors.increments import LabelPairs

HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")

DEMO_MARKER = "specscope_demo_info"
"""Present in the exposition of the demo engine and nowhere else."""

RANK_LABELS = ("dp_rank", "tp_rank", "pp_rank", "moe_ep_rank")

ALWAYS_SUMMED = frozenset({"is_streaming"})
"""Labels that split one count in two in some versions; summed away so that all versions agree."""


@dataclass(frozen=True, slots=True)
class Row:
    """One canonical metric and the raw family that it is read from."""

    metric: str
    raw: tuple[str | None, ...]
    """Raw name without prefix for each known engine version; None where that version has nothing like it."""
    divisor: float = 1.0
    """Raw value / divisor = value in the catalogue's unit."""
    where: tuple[str, str] | None = None
    """Take only series with this label value; the label is then dropped."""
    adds: LabelPairs = ()
    """Labels added to each series."""
    sums_away: frozenset[str] = ALWAYS_SUMMED
    """Labels over whose values the series are summed."""
    is_nan_normal: bool = False
    """NaN means "not measured" and is silently left out; elsewhere NaN is refused."""
    at_most: float | None = None
    """Values above this are impossible and refused."""
    zero_means: str = ""
    """What 0 stands for if it is no measurement; such a 0 is silently left out."""
    not_in_fixture: Mapping[str, str] = field(default_factory=dict)
    """Engine version → why no fixture of that version holds this name."""

    @property
    def kind(self) -> Kind:
        """Kind of the canonical metric."""
        return CATALOGUE[self.metric].kind

    @property
    def is_additive(self) -> bool:
        """True if series that differ only in dropped labels add up."""
        return (
            self.kind is not Kind.LEVEL
            or CATALOGUE[self.metric].across is Across.SUM
            or bool(self.sums_away - ALWAYS_SUMMED)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct raw names of all versions."""
        return tuple(dict.fromkeys(name for name in self.raw if name is not None))


@dataclass(frozen=True, slots=True)
class RawName:
    """What one raw sample name, prefix and suffix included, is used for."""

    rows: tuple[Row, ...]
    family: str
    """Name without prefix and without histogram suffix."""
    suffix: str
    """``_bucket``, ``_sum``, ``_count``, or empty for a plain sample."""
    is_guest: bool = False
    """Not of the engine's own: its labels say nothing of which models and ranks the engine reports."""


@dataclass(frozen=True, slots=True)
class Table:
    """What one engine writes."""

    engine: str
    """As in `Launch.engine`."""
    rows: tuple[Row, ...]
    prefixes: tuple[str, str]
    """As the engine writes it, and without a colon."""
    versions: tuple[str, ...]
    """Versions whose metric sets are known, oldest first; versions in between resemble the one before."""
    guests: tuple[Row, ...] = ()
    """What others write among the engine's metrics, under names that have no prefix: ours, inside it."""
    index: Mapping[str, RawName] = field(init=False)
    """Raw sample name as it stands in the exposition → what it is used for."""

    def __post_init__(self) -> None:
        guests = {name: replace(raw, is_guest=True) for name, raw in _raw_index(self.guests, ("",)).items()}
        object.__setattr__(self, "index", _raw_index(self.rows, self.prefixes) | guests)

    @property
    def wanted(self) -> frozenset[str]:
        """Sample names worth parsing; every other line is only glanced at."""
        return frozenset(self.index) | {DEMO_MARKER}


def _raw_index(rows: tuple[Row, ...], prefixes: tuple[str, ...]) -> dict[str, RawName]:
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        for name in row.names:
            families[name].append(row)
    index = {}
    for family, used in families.items():
        suffixes = HISTOGRAM_SUFFIXES if used[0].kind is Kind.DISTRIBUTION else ("",)
        for prefix in prefixes:
            for suffix in suffixes:
                index[prefix + family + suffix] = RawName(tuple(used), family, suffix)
    return index
