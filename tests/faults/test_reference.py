"""Kill -9 while a reference is built: the next run goes on to the same reference and reads no row twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.collectors.references.writers import FORMATS, Format, write_dump

from specscope_collectors.references.building import PILOTS
from specscope_collectors.references.choosing import choose_files
from specscope_collectors.references.document import SUFFIX
from specscope_collectors.references.walking import files_of

ROOT = Path(__file__).resolve().parents[2]
REQUESTS, KILLS = 140, 6
LOOKS = 2
"""Times that one of the first requests is opened before it is read: for the layout, and for limits."""


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of many requests, in one folder."""
    layout = Format(FORMATS["hybrid"].content, lambda index: f"data_{index}.pt", "")
    return write_dump(tmp_path_factory.mktemp("dump") / "rows", layout, requests=REQUESTS)


@contextmanager
def building(dump: Path, out: Path) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[str]]]:
    """Run a build; yield it and the names of files as it opens them."""
    reading, writing = os.pipe()
    worker = [sys.executable, str(ROOT / "tests/faults/reference_worker.py"), str(writing)]
    with subprocess.Popen(
        [*worker, str(dump), "--out", str(out)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        os.close(writing)
        with os.fdopen(reading) as names:
            yield process, (line.rstrip("\n") for line in names)


def killed(dump: Path, out: Path, chance: random.Random, before: int) -> list[str]:
    """Begin a build, kill it somewhere behind ``before`` files; return those that it had opened."""
    with building(dump, out) as (process, names):
        opened = [next(names) for _ in range(before + chance.randrange(1, 12))]
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.random() / 100)  # somewhere within a file or a checkpoint
        process.kill()
        opened += list(names)
    assert process.returncode == -9, "the build ended by itself"
    return opened


def whole(dump: Path, out: Path) -> list[str]:
    """Run a build to its end; return the files that it opened."""
    with building(dump, out) as (process, names):
        opened = list(names)
        _, said = process.communicate()
    assert process.returncode == 0, said
    return opened


def done_of(partial: Path) -> int:
    """Return how many requests a checkpoint holds; 0: there is none. It is never torn."""
    if not partial.exists():
        return 0
    with np.load(partial) as found:
        return int(json.loads(found["head"].tobytes())["done"])


def test_a_build_that_is_killed_again_and_again(dump: Path, tmp_path: Path) -> None:
    undisturbed, out = tmp_path / f"undisturbed{SUFFIX}", tmp_path / f"killed{SUFFIX}"
    expected = whole(dump, undisturbed)
    order = choose_files(files_of(dump), 65_536, 20_260_401)
    assert sorted(expected) == sorted([*order, *order[:PILOTS] * LOOKS])
    chance, partial = random.Random(7), out.with_name(f"{out.name}.partial")
    done = 0
    for _ in range(KILLS):
        before = LOOKS * PILOTS + 1 if not done else 1
        opened = killed(dump, out, chance, before)
        if done:
            assert not set(opened[1:]) & set(order[:done]), "a request was read again"
        assert not out.exists()
        assert done_of(partial) >= done
        done = done_of(partial)
    assert 0 < done < REQUESTS
    rest = whole(dump, out)
    assert rest == [order[0], *order[done:]], "one is opened to know the layout, then what is not done yet"
    assert out.read_bytes() == undisturbed.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([out.name, undisturbed.name])
