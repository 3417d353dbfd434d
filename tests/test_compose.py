"""docker-compose.yml and Dockerfile: read by the real Compose where there is one, and checked by rule."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from specscope_collectors.cli import collect
from specscope_server.cli import demo_engine
from specscope_server.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRETS = {"SPECSCOPE_TOKEN": "reader", "SPECSCOPE_DATABASE_PASSWORD": "secret"}
PINNED = re.compile(r"^[a-z/]+:\d+\.\d+(\.\d+)?(-[a-z]+)*$")


def compose_command() -> list[str] | None:
    """Return the command of an installed Compose, or None."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if (
            shutil.which(command[0])
            and subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0
        ):
            return command
    return None


@pytest.fixture(scope="module")
def compose() -> list[str]:
    """The real Compose; skipped without one, failed in CI."""
    command = compose_command()
    if command is None:
        message = "no Compose: install the plugin docker-compose (Debian: apt-get install docker-compose)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return command


def config(compose: list[str], variables: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Let Compose read the file with these variables only."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*compose, "--file", str(ROOT / "docker-compose.yml"), *options, "config"]
    return subprocess.run(command, capture_output=True, text=True, env=kept | variables, check=False)


def test_compose_reads_the_file(compose: list[str]) -> None:
    outcome = config(compose, SECRETS, "--profile", "demo")
    assert outcome.returncode == 0, outcome.stderr
    services = yaml.safe_load(outcome.stdout)["services"]
    assert {"database", "server", "demo-engine"} <= set(services) <= set(SERVICES)  # some list all profiles
    assert services["server"]["environment"]["SPECSCOPE_DATABASE"].endswith(
        "specscope:secret@database/specscope"
    )


@pytest.mark.parametrize("missing", SECRETS)
def test_compose_asks_for_each_secret(compose: list[str], missing: str) -> None:
    given = {name: value for name, value in SECRETS.items() if name != missing}
    outcome = config(compose, given)
    assert outcome.returncode != 0
    assert missing in outcome.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_each_image_is_pinned_and_each_service_has_a_health_check(name: str) -> None:
    service = SERVICES[name]
    assert PINNED.match(service["image"]), service["image"]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_named_and_ports_are_loopback(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        assert volume.partition(":")[0] in COMPOSE["volumes"], "a path of the host"
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", SERVICES)
def test_services_wait_until_what_they_need_is_healthy(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[needed]
        assert SERVICES[needed].get("profiles") == SERVICES[name].get("profiles")


def test_the_server_waits_for_its_database() -> None:
    assert "database" in SERVICES["server"]["depends_on"]


def test_every_variable_of_the_server_is_a_setting() -> None:
    names = {name.removeprefix("SPECSCOPE_").lower() for name in SERVICES["server"]["environment"]}
    assert names <= set(Settings.model_fields)
    assert {"token", "database", "migrate", "watch"} <= names


def test_secrets_stand_nowhere_in_the_file() -> None:
    for name in ("SPECSCOPE_TOKEN", "SPECSCOPE_DATABASE"):
        assert "${" in SERVICES["server"]["environment"][name]
    assert SERVICES["database"]["environment"]["POSTGRES_PASSWORD"].startswith(
        "${SPECSCOPE_DATABASE_PASSWORD:?"
    )


def test_the_demo_engine_is_optional_and_its_command_exists(capsys: pytest.CaptureFixture[str]) -> None:
    service = SERVICES["demo-engine"]
    assert service["profiles"] == ["demo"]
    subcommand, *options = service["command"]
    assert subcommand == "demo-engine"
    demo_engine.main(["--help"])
    shown = capsys.readouterr().out
    assert all(option in shown for option in options if option.startswith("--"))


def test_the_image_is_pinned_and_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(re.fullmatch(r"python:\d+\.\d+\.\d+-slim-[a-z]+", base) for base in bases)
    assert lines.index("USER specscope") < next(
        i for i, line in enumerate(lines) if line.startswith("ENTRYPOINT")
    )


def test_the_image_has_the_version_of_the_product() -> None:
    from specscope import __version__

    ours = {service["image"] for name, service in SERVICES.items() if name != "database"}
    assert ours == {f"specscope:{__version__}"}


def test_the_collector_is_optional_and_reaches_the_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # help breaks no name then
    service = SERVICES["collector"]
    assert service["profiles"] == ["collector"]
    subcommand, *options = service["command"]
    assert subcommand == "collect"
    collect.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(option in shown for option in options if option.startswith("--"))
    assert all(name in shown for name in ("--status", *service["environment"])), "the variables are read"
    named = options[options.index("--server") + 1]
    assert named == "http://server:8200"
    assert SERVICES["server"]["environment"]["SPECSCOPE_ALLOWED_HOSTS"].startswith("server,")
