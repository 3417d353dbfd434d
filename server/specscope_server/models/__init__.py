"""ORM tables. Importing this package registers every table on `Base.metadata`."""

from specscope_server.models.activity import Collector, Event, Request, SourceStatus
from specscope_server.models.alert_channel import Channel, Delivery, DeliveryAlert, DeliveryAttempt
from specscope_server.models.alert_rule import AlertRule, AlertRuleVersion, Audit, Silence
from specscope_server.models.alert_state import AlertGroup, AlertState, AlertTransition, Lease
from specscope_server.models.base import Base
from specscope_server.models.reference import Reference
from specscope_server.models.series import (
    BucketLayout,
    Distribution,
    DistributionHour,
    DistributionMinute,
    DistributionTenMinutes,
    Latest,
    Sample,
    SampleHour,
    SampleMinute,
    SampleTenMinutes,
    Series,
)
from specscope_server.models.server import Launch, Server
from specscope_server.models.state import StateProfile
from specscope_server.models.token import ApiToken
from specscope_server.models.trace import Trace

__all__ = [
    "AlertGroup",
    "AlertRule",
    "AlertRuleVersion",
    "AlertState",
    "AlertTransition",
    "ApiToken",
    "Audit",
    "Base",
    "BucketLayout",
    "Channel",
    "Collector",
    "Delivery",
    "DeliveryAlert",
    "DeliveryAttempt",
    "Distribution",
    "DistributionHour",
    "DistributionMinute",
    "DistributionTenMinutes",
    "Event",
    "Latest",
    "Launch",
    "Lease",
    "Reference",
    "Request",
    "Sample",
    "SampleHour",
    "SampleMinute",
    "SampleTenMinutes",
    "Series",
    "Server",
    "Silence",
    "SourceStatus",
    "StateProfile",
    "Trace",
]
