"""What a layer id means: ids of every engine and tool → boundaries, in one place.

Boundary b is the residual stream after b decoder layers. The same list of ids names other boundaries in
another tool, another version of it, or for another class of model. `resolve` says which, by which rule and
where the rule was read, or why it cannot be told. Pure; needs the standard library alone.
"""

from __future__ import annotations

from specscope_collectors.layer_ids.resolving import Question, Resolved, as_list, resolve
from specscope_collectors.layer_ids.rules import System

__all__ = ["Question", "Resolved", "System", "as_list", "resolve"]
