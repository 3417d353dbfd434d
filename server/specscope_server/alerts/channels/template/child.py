"""The process that renders one template: reads an order (JSON) from stdin, writes the text to stdout.

Run by its path, isolated; it knows the standard library and Jinja only. Exit status 1 with ``template: …`` on
stderr for what the template does wrong.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any


def main() -> int:
    """Render; return the exit status."""
    order = json.load(sys.stdin.buffer)
    sys.path[:] = order["path"]
    resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Not HTML: bodies are JSON or text, and `tojson` escapes.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        text = _bounded(environment.from_string(order["template"]).generate(order["known"]), order["most"])
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return _failed(f"{type(error).__name__}: {error}")
    except RecursionError:
        return _failed("it is nested too deeply")
    sys.stdout.buffer.write(text)
    return 0


def _bounded(parts: Any, most: int) -> bytes:
    written = bytearray()
    for part in parts:
        written += part.encode("utf-8", "replace")
        if len(written) > most:
            raise ValueError(f"it writes more than {most} bytes")
    return bytes(written)


def _failed(reason: str) -> int:
    sys.stderr.write(f"template: {reason[:250]}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
