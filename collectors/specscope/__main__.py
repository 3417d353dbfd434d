"""Dispatch `specscope SUBCOMMAND …` to the part of the product that owns it.

The bare package has no dependencies, so this module may import nothing outside the standard library before
it knows the subcommand; a subcommand whose extra is not installed says which one to install.
"""

from __future__ import annotations

import importlib
import sys

from specscope import __version__

COMMANDS: dict[str, tuple[str, str, str]] = {
    # subcommand: (module with a `main(argv) -> int`, extra, what it does)
    "serve": ("specscope_server.cli.serve", "server", "watch servers and serve the dashboard"),
    "collect": (
        "specscope_collectors.cli.collect",
        "collectors",
        "collect on this machine, store elsewhere",
    ),
    "doctor": (
        "specscope_server.cli.doctor",
        "server",
        "say what can be seen at a server, and how to see more",
    ),
    "import": (
        "specscope_server.cli.import_",
        "server",
        "take in logs, requests and traces that were written earlier",
    ),
    "trace": ("specscope_server.cli.trace", "server", "let an engine record a profiler trace, and import it"),
    "reference": (
        "specscope_server.cli.reference",
        "server",
        "read a training dump: what its hidden states look like",
    ),
    "token": ("specscope_server.cli.token", "server", "make, list and revoke tokens with a scope"),
    "db": ("specscope_server.cli.db", "server", "upgrade, downgrade, inspect or back up the database"),
    "probe": ("specscope_probe.cli", "", "what can be measured inside the SGLang of this environment"),
    "demo": ("specscope_server.cli.demo", "server", "demo engines and the dashboard in one go"),
    "demo-engine": ("specscope_server.cli.demo_engine", "server", "a process that answers like SGLang"),
}


def usage() -> str:
    """Return the overview printed by `specscope` and `specscope --help`."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {what}" for name, (_, _, what) in COMMANDS.items())
    return (
        "usage: specscope COMMAND [OPTIONS]\n\n"
        f"Specscope {__version__} watches speculative decoding in production."
        f"\n\n{rows}\n\nspecscope COMMAND --help explains one command."
    )


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit status (2 for a usage error)."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"specscope {__version__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        print(f"specscope: there is no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    module_name, extra, _ = COMMANDS[name]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("specscope") and error.name != module_name.partition(".")[0]:
            raise
        print(
            f"specscope {name}: {error.name} is not installed here; "
            f"install what this command needs: pip install 'specscope[{extra}]'",
            file=sys.stderr,
        )
        return 3
    status: int = module.main(rest)
    return status


if __name__ == "__main__":
    sys.exit(main())
