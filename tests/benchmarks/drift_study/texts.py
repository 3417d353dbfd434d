"""Domains of text from what a Debian machine with Python holds. The same machine gives the same texts."""

from __future__ import annotations

import gzip
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

SEED = 41
LONGEST_FILE = 400_000
DOCUMENT_CHARACTERS = 2_400
SHORTEST_CHARACTERS = 900
_ROFF = re.compile(r"\\f.|\\\(..|\\[-&e|^]|\\s[-+0-9]+")
_HEADER = re.compile(r"\A.*?\n\n", re.DOTALL)

STDLIB = Path(sysconfig.get_path("stdlib"))
PACKAGES = Path(sysconfig.get_path("purelib"))
SHARE = Path("/usr/share")
MAN = SHARE / "man"


def files_of(root: Path, patterns: Sequence[str], skip: str = "site-packages") -> list[Path]:
    """Return files below a folder, by path."""
    found = {path for pattern in patterns for path in root.glob(pattern) if skip not in path.parts}
    return sorted(path for path in found if path.is_file())


SOURCES: dict[str, list[Path]] = {
    "prose": [
        *files_of(PACKAGES, ["*.dist-info/METADATA"], ""),
        *files_of(SHARE / "doc", ["*/README*", "**/*.md", "**/*.rst", "**/*.txt.gz"]),
    ],
    "code": files_of(STDLIB, ["*.py", "*/*.py"]),
    "html": files_of(SHARE, ["doc/**/*.html", "javascript/**/*.html"]),
    "json": files_of(SHARE, ["**/*.json"]) + files_of(PACKAGES, ["**/*.json"], ""),
    "manual": files_of(MAN, [f"man{section}/*.gz" for section in (1, 5, 8)]),
    "foreign": files_of(
        MAN, [f"{tongue}/man{section}/*.gz" for tongue in ("de", "fr", "es") for section in (1, 8)]
    ),
    "headers": files_of(Path("/usr/include"), ["*.h", "*/*.h"]),
    "perl": files_of(SHARE / "perl", ["**/*.pm", "**/*.pl"]),
    "javascript": files_of(SHARE, ["**/*.js"]),
    "xml": files_of(SHARE, ["**/*.xml", "**/*.svg"]),
    "other tongues": files_of(
        MAN, [f"{tongue}/man{section}/*.gz" for tongue in ("it", "nl", "pl") for section in (1, 8)]
    ),
    "vim": files_of(SHARE / "vim", ["**/*.vim"]),
    "locales": files_of(SHARE / "i18n" / "locales", ["*"]),
    "more tongues": files_of(
        MAN, [f"{tongue}/man{section}/*.gz" for tongue in ("sv", "da", "pt_BR", "ro") for section in (1, 8)]
    ),
}
"""Domain → files that it is taken from."""


def read(path: Path) -> str:
    """Return the text of a file, without the marks of a manual page or the header of a package."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    text = content.decode("utf-8", "replace")
    if path.name == "METADATA":
        return _HEADER.sub("", text)
    if MAN in path.parents:
        lines = (line for line in text.splitlines() if not line.startswith((".", "'")))
        return _ROFF.sub("", "\n".join(lines))
    return text


def documents(domain: str, count: int) -> list[str]:
    """Return so many different pieces of text: the beginning of a file, or from a line of it on."""
    draw = random.Random(f"{SEED}-{domain}")
    paths = list(SOURCES[domain])
    draw.shuffle(paths)
    found = list(_pieces(paths, draw, count))
    if len(found) < count:
        raise SystemExit(f"this machine has {len(found)} of {count} texts of the domain {domain!r}")
    return found


def _pieces(paths: Sequence[Path], draw: random.Random, count: int) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        if len(seen) == count:
            return
        if not 0 < path.stat().st_size <= LONGEST_FILE:
            continue
        text = read(path)
        start = text.find("\n", draw.randrange(len(text) or 1)) + 1 if draw.random() < 0.6 else 0
        piece = text[start : start + DOCUMENT_CHARACTERS].strip()
        if len(piece) >= SHORTEST_CHARACTERS and piece not in seen and "\ufffd" not in piece:
            seen.add(piece)
            yield piece


TOPICS = """volcanoes, chess, the violin, tides, sourdough, glaciers, honey bees, the printing press,
marathons, rainbows, insurance, lighthouses, gravity, jazz, compost, the Silk Road, vaccines,
bridges, dreams, satellites, tea, whales, inflation, calligraphy, magnets, orchids, the
Olympics, earthquakes, paper, owls, libraries, sleep, batteries, migration, maps, steam engines,
coral reefs, time zones, friendship, photography, deserts, contracts, algebra, windmills, the
Moon, fermentation, knots, traffic, mushrooms, castles""".replace("\n", " ").split(", ")
FORMS = (
    "Explain {} to a child.", "Write two paragraphs about {}.", "What is the history of {}?",
    "Give me five surprising facts about {}.", "Why do people care about {}?",
)  # fmt: skip
TASKS = """reverses a string, counts the vowels of a text, sorts a list of tuples by the second value,
reads a CSV file, checks whether a number is prime, merges two dictionaries, finds duplicate
lines, computes a moving average, parses a date, removes HTML tags, flattens a nested list,
generates passwords""".replace("\n", " ").split(", ")
LANGUAGES = ("Python", "JavaScript", "Go", "shell")
SHORT = """Hi!, Hello., Thanks!, Yes., No., Why?, Tell a joke., Good morning., Who are you?, What time is
it?, Help!, 2+2?, Go on., Sing!, Count to ten., Say something., Bye., OK., Really?, A poem,
please., Name a fruit., Which day?, Cats or dogs?, Red?, How?, Where?, Define art., Pick one.,
Surprise me., A riddle?, Ready?, Spell cat., Sum up., Translate: oui., Any news?, Guess., Rhyme
with day., Wake up!, Weather?, Math?, Colors?, Food?, Music?, Books?, Dreams?, Moon?, Sun?,
Rain?""".replace("\n", " ").split(", ")


def questions(domain: str) -> list[str]:
    """Return what is asked in a domain of conversations, mixed."""
    asked = {
        "chat": [form.format(topic) for topic in TOPICS for form in FORMS],
        "chat about code": [
            f"Write a {tongue} function that {task}." for tongue in LANGUAGES for task in TASKS
        ],
        "shortest chats": SHORT,
    }[domain]
    random.Random(f"{SEED}-{domain}").shuffle(asked)
    return asked
