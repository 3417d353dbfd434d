"""One typed `Settings`: environment (`SPECSCOPE_…`), TOML file and CLI flags use the same names.

What wins, from strongest: CLI flag, environment, `SPECSCOPE_X_FILE` (secrets only), file, default.
The descriptions below are the source of the settings page of the documentation and of `specscope serve
--help`.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean

DEFAULT_FILE = "specscope.toml"
SECRETS = ("token", "engine_api_key", "engine_admin_key", "secret_key")
"""Fields that are never shown, never flags, and may come from a file named by ``X_FILE``."""

LONGEST_DAYS = 36_500
"""100 years: for ever, and still a time that can be reckoned with."""

Names = Annotated[list[str], NoDecode]
"""Repeatable flag; a TOML array; in the environment separated by commas or spaces."""


class Settings(BaseSettings):
    """Everything that can be set about `specscope serve`."""

    model_config = SettingsConfigDict(
        env_prefix="SPECSCOPE_", extra="forbid", validate_default=True, frozen=True
    )

    # Store
    database: str = Field(
        "sqlite:///specscope.db",
        description="Database URL: `sqlite:///FILE` or `postgresql+psycopg://USER@HOST/NAME`.",
    )
    migrate: bool = Field(
        False, description="Upgrade a PostgreSQL schema at start (a SQLite file is always upgraded at start)."
    )
    retention_raw_days: float = Field(
        7, gt=0, le=LONGEST_DAYS, description="Days for which every scraped sample is kept."
    )
    retention_1m_days: float = Field(
        30, gt=0, le=LONGEST_DAYS, description="Days for which 1-minute summaries are kept."
    )
    retention_10m_days: float = Field(
        180, gt=0, le=LONGEST_DAYS, description="Days for which 10-minute summaries are kept."
    )
    retention_1h_days: float = Field(
        1095, gt=0, le=LONGEST_DAYS, description="Days for which 1-hour summaries are kept."
    )
    retention_requests_days: float = Field(
        30, gt=0, le=LONGEST_DAYS, description="Days for which counts of single requests are kept."
    )
    retention_events_days: float = Field(
        365, gt=0, le=LONGEST_DAYS, description="Days for which events and reduced traces are kept."
    )
    retention_states_days: float = Field(
        90, gt=0, le=LONGEST_DAYS, description="Days for which profiles of hidden states are kept."
    )
    retention_alerts_days: float = Field(
        365,
        gt=0,
        le=LONGEST_DAYS,
        description="Days for which the history of alerts, what was delivered and who changed what are kept.",
    )

    # Web
    host: str = Field("127.0.0.1", description="Address to listen on; anything but loopback needs a token.")
    port: int = Field(8200, ge=0, le=65_535, description="Port to listen on; 0 takes any free one.")
    token: SecretStr | None = Field(
        None,
        description="Token that opens everything (bearer header or login page); tokens for a part are made "
        "by `specscope token`. Unset: no login, loopback only.",
    )
    allowed_hosts: Names = Field(
        default_factory=list,
        description="Further host names under which browsers may reach this server (against DNS "
        "rebinding); `*` allows all.",
    )
    max_push_bytes: int = Field(
        33_554_432, ge=1_000, description="Largest body that is taken in one POST, after decompression."
    )

    # Watching
    watch: Names = Field(
        default_factory=list,
        description="Base URL of an inference server to watch, e.g. `http://gpu1:30000`; `NAME=URL` "
        "names it.",
    )
    collect: Path | None = Field(
        None,
        description="Collectors' file (TOML): more servers, where to find servers, and jobs. It is followed "
        "while it changes.",
    )
    engine_api_key: SecretStr | None = Field(None, description="API key sent to the watched servers.")
    engine_admin_key: SecretStr | None = Field(
        None, description="Admin key of the watched servers, to start captures with; unset: their API key."
    )
    scrape_interval_seconds: float = Field(
        5.0, ge=0.1, le=3600, description="Time between two reads of a server's metrics."
    )
    scrape_timeout_seconds: float = Field(
        4.0, gt=0, le=600, description="Longest time that one read may take."
    )
    info_interval_seconds: float = Field(
        300.0,
        ge=1,
        le=604_800,
        description="Time between two reads of a server's configuration (each interrupts its "
        "schedulers briefly).",
    )
    max_body_bytes: int = Field(
        33_554_432, ge=1_000, description="Largest answer that is read from a watched server."
    )
    max_series_per_target: int = Field(
        20_000, ge=1, description="Most series kept per watched server; more are refused and counted."
    )
    tls_verify: bool = Field(True, description="Check the certificates of watched servers.")
    ca_file: Path | None = Field(
        None, description="PEM file of the authority that signed the watched servers' certificates."
    )

    # Traces
    max_trace_bytes: int = Field(
        1_073_741_824, ge=1_000, description="Largest profiler trace, as it is sent, that can be uploaded."
    )
    trace_folder: Path | None = Field(
        None, description="Folder in which the files of imported traces are kept; unset: only what they say."
    )
    trace_folder_max_bytes: int = Field(
        10_737_418_240, ge=1_000, description="Bytes in the folder of traces beyond which the oldest go."
    )
    trace_capture_folder: Path | None = Field(
        None,
        description="Folder, the same for the engines and for this server, into which engines write captures "
        "that are started here; unset: they stay on the engine's host.",
    )

    # Alerts
    alerts: Path | None = Field(
        None,
        description="Alerts' file (YAML): rules, channels, routes. It is followed while it changes. The "
        "rules that come with Specscope are evaluated without it too.",
    )
    alert_interval_seconds: float = Field(
        15.0, ge=1, le=3600, description="Time between two evaluations of the rules of alerts."
    )
    public_url: str | None = Field(
        None,
        description="Address under which people reach this server, for the links in alerts, e.g. "
        "`https://specscope.example.org`; unset: alerts have no links.",
    )
    secret_key: SecretStr | None = Field(
        None,
        description="Key with which secrets of channels are sealed in the database, 32 characters or more; "
        "several, separated by commas: the first seals, all open. Unset: channels made over REST must name "
        "where their secrets are.",
    )
    alerts_secrets_folder: Path | None = Field(
        None, description="Folder below which channels made over REST may name files with secrets."
    )
    alerts_allow_private: bool = Field(
        False,
        description="Let channels made over REST connect to private addresses; those of the alerts' file may "
        "by their own `allow_private`.",
    )
    alerts_private_networks: Names = Field(
        default_factory=list,
        description="Private networks that every channel may connect to, e.g. `10.20.0.0/16`.",
    )

    # Logs
    log_format: Literal["text", "json"] = Field("text", description="`text` for people, `json` for machines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is logged."
    )

    @field_validator("watch", "allowed_hosts", "alerts_private_networks", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return value.replace(",", " ").split() if isinstance(value, str) else value

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{value[:100]!r} is not an address; write e.g. https://specscope.example.org")
        return value.rstrip("/")

    @field_validator("alerts_private_networks")
    @classmethod
    def _are_networks(cls, values: list[str]) -> list[str]:
        for value in values:
            try:
                ipaddress.ip_network(value)
            except ValueError as error:
                raise ValueError(f"{error}; write networks as 10.20.0.0/16") from None
        return values

    @field_validator("token", "engine_api_key", "engine_admin_key", "secret_key")
    @classmethod
    def _not_blank(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().strip():
            raise ValueError("is set but empty; give it a value or leave it out")
        return value

    @model_validator(mode="after")
    def _open_only_with_token(self) -> Self:
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host} can be reached from other machines, and no token is set: "
                "set SPECSCOPE_TOKEN (or SPECSCOPE_TOKEN_FILE), or listen on 127.0.0.1"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take flags, then the environment; files are read by `load_settings`, which knows their names."""
        return (init_settings, env_settings)


def load_settings(flags: Mapping[str, Any] | None = None, config: str | Path | None = None) -> Settings:
    """Return the settings from all sources; raise `InvalidInput` that names the setting, the reason and the
    remedy.

    ``config`` is the TOML file; without it `SPECSCOPE_CONFIG`, else `./specscope.toml` if there is one.
    """
    below = {**_from_file(config), **_from_secret_files()}
    in_environment = {name for name in Settings.model_fields if f"SPECSCOPE_{name.upper()}" in os.environ}
    values = {name: value for name, value in below.items() if name not in in_environment}
    values |= {name: value for name, value in (flags or {}).items() if value is not None}
    try:
        return Settings(**values)
    except ValidationError as error:
        raise InvalidInput(
            "; ".join(_explain(entry) for entry in error.errors(include_input=False))
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can connect to ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _from_file(config: str | Path | None) -> dict[str, Any]:
    asked = config or os.environ.get("SPECSCOPE_CONFIG")
    path = Path(asked or DEFAULT_FILE)
    if not asked and not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"the settings file {path} cannot be read: {error.strerror}; check --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the settings file {path} is not TOML: {error}") from None
    for name in values:
        if name not in Settings.model_fields:
            hint = did_you_mean(name, Settings.model_fields)
            raise InvalidInput(
                f"{path}: there is no setting {name!r}.{hint} The settings are listed by specscope "
                f"serve --help"
            )
    return values


def _from_secret_files() -> dict[str, str]:
    found = {}
    for name in SECRETS:
        variable = f"SPECSCOPE_{name.upper()}_FILE"
        path = os.environ.get(variable)
        if path:
            found[name] = read_secret(path, variable)
    return found


def read_secret(path: str | Path, name: str) -> str:
    """Return the text of a secret's file, stripped; ``name`` is the flag or variable for the message."""
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}={path} cannot be read: {error}; name a readable text file") from None


def _explain(entry: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in entry["loc"])
    reason = str(entry["msg"]).removeprefix("Value error, ")
    return f"setting {name}: {reason}" if name else reason
