"""The story on one screen: `make demo-real`. A real model is served rightly, with faults, and rightly again.

The right engine comes first, one with the embedding in slot 0 second, one whose head expects its slots in
another order third, and the right one again last and until Ctrl-C. Prompts are sent all the time; the
dashboard at the printed address shows what each fault costs, and the Drift page names it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real_model import install
from tests.sglang_cpu import install as rig_install
from tests.sglang_cpu.install import RigMissingError
from tests.support.probe import install_probe
from tests.support.product import Product, serving
from tests.support.real_model import RealModel, ask
from tests.support.rig import RunningRig, free_port
from tests.support.story import SERVER, engine, make_references, probing


@dataclass(frozen=True, slots=True)
class Chapter:
    """One engine: its head, and what is seen of it."""

    name: str
    head: str
    words: str


CHAPTERS = (
    Chapter("before", "right", "the right layers. Accept length about 2.1; Drift finds what was trained on"),
    Chapter(
        "embedding", "embedding",
        "layers -1, 1, 14 are captured instead of 1, 14, 26: the embedding is in slot 0. "
        "Accept length about 1.3; Drift names the slot",
    ),
    Chapter(
        "swapped", "swapped",
        "the right layers, but a head that expects its slots in another order. "
        "Accept length about 1.05; Drift, asked with the reference `swapped`, says which slot is which",
    ),
    Chapter(
        "right", "right", "the fix: the right layers again. Accept length about 2.1; Drift says all is well"
    ),
)  # fmt: skip
TOKENS, AT_ONCE = 48, 4
BEGIN = """
First use: about 5 minutes and 3 GB for the engine and the model. Then: about 2 minutes for what to compare
with, and {minutes:.0f} minutes until the right layers come back. An engine starts in about half a
minute. Needs two processors and 4 GB of memory. No time seen here says anything about speed.
"""


def say(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Run until Ctrl-C; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=90.0, help="how long each of the first three is served"
    )
    seconds = parser.parse_args(arguments).seconds
    print(BEGIN.format(minutes=(len(CHAPTERS) - 1) * (seconds + 40) / 60), flush=True)
    try:
        model = ready_model()
    except RigMissingError as reason:
        print(f"not available here: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="specscope-story-") as folder, ExitStack() as stack:
        try:
            tell(model, Path(folder), seconds, stack)
        except KeyboardInterrupt:
            say("stopping")
    return 0


def ready_model() -> RealModel:
    """Return the model; made now if need be. Raises RigMissingError."""
    say("engine and model …")
    rig = rig_install.ensure()
    model = RealModel(rig, install.ensure_target(rig))
    model.dump()
    return model


def tell(model: RealModel, folder: Path, seconds: float, stack: ExitStack) -> None:
    """Serve one chapter after the other, the last one until interrupted."""
    port = free_port()
    product = stack.enter_context(serving(folder, {SERVER: f"http://127.0.0.1:{port}"}))
    say(f"the dashboard is at  {product.base_url}/?server={SERVER}")
    say("profiling what the head was trained on, and all boundaries (about 2 minutes) …")
    references = make_references(model, folder, formats=())
    references.upload(product.base_url)
    site = install_probe(folder / "site")
    for chapter in CHAPTERS:
        place = folder / chapter.name
        place.mkdir()
        variables = probing(site, place, product.base_url, references.token_ids)
        with served(engine(model, chapter.head, place, variables, port)) as running:
            say(f"now served: {chapter.words}")
            until = None if chapter is CHAPTERS[-1] else time.monotonic() + seconds
            send(model, running, product, until)


@contextmanager
def served(running: RunningRig) -> Iterator[RunningRig]:
    """Start an engine and stop it at the end."""
    try:
        running.start()
        yield running
    finally:
        running.stop()


def send(model: RealModel, running: RunningRig, product: Product, until: float | None) -> None:
    """Send prompts until a time; None: for ever."""
    prompts = model.prompts()
    while until is None or time.monotonic() < until:
        answers = ask(running, prompts[:8], TOKENS, AT_ONCE)
        prompts = prompts[8:] + prompts[:8]
        tokens = sum(answer["meta_info"]["completion_tokens"] for answer in answers)
        cycles = sum(answer["meta_info"]["spec_verify_ct"] for answer in answers)
        say(f"accept length of the last answers: {tokens / cycles:.2f}   {product.base_url}/?server={SERVER}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
