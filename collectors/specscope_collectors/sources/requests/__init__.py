"""Per-request records: what an engine says of one finished request, in whatever form it said it (pure)."""

from specscope_collectors.sources.requests.answer import essentials, records_of, to_record
from specscope_collectors.sources.requests.errors import HealthCheckError, RefusedError, UnreadableError
from specscope_collectors.sources.requests.labels import checked_labels, parse_labels

__all__ = [
    "HealthCheckError",
    "RefusedError",
    "UnreadableError",
    "checked_labels",
    "essentials",
    "parse_labels",
    "records_of",
    "to_record",
]
