"""E-mail: text and HTML of the same cards, with the panel as a picture, for one mail server."""

from __future__ import annotations

from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from specscope_server.alerts.channels.contract import ChannelConfig, ChannelKind, Context, Mail, Message
from specscope_server.alerts.channels.email.html import PICTURE_ID, html_of
from specscope_server.alerts.channels.fields import Line, SecretText, check_host
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.words import headline, plain, shorten

MAX_SUBJECT = 200
MAX_CARDS = 20
MAX_CARD = 4_000


def _address(text: str) -> str:
    try:
        address = Address(addr_spec=text)
    except (ValueError, IndexError, MessageError):
        raise ValueError("is no e-mail address; write name@example.org") from None
    if not address.domain or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("is no e-mail address; write name@example.org")
    return text


def _user(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable():
        raise ValueError("is empty or holds characters that cannot be sent to log in; write it in ASCII")
    return text


MailAddress = Annotated[str, AfterValidator(_address), Field(max_length=254)]


class Config(ChannelConfig):
    """Settings."""

    host: Annotated[str, AfterValidator(check_host)] = Field(
        pattern=r"^[A-Za-z0-9.:_-]{1,253}$", description="The mail server."
    )
    port: int = Field(587, ge=1, le=65_535, description="587 for starttls, 465 for tls.")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="`starttls` (refused when the server has none), `tls` from the start, or `none`.",
    )
    user: Annotated[str, AfterValidator(_user)] | None = Field(
        None, max_length=254, description="User name, with `password`."
    )
    password: SecretText | None = Field(None, description="Never sent over an unencrypted connection.")
    sender: MailAddress = Field(description="Address that it comes from.")
    to: list[MailAddress] = Field(min_length=1, max_length=50, description="Addresses that it goes to.")
    subject_prefix: Line = Field("[Specscope]", max_length=60, description="Before each subject.")

    @model_validator(mode="after")
    def _encrypted_password(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password go together; give both or neither")
        if self.password is not None and self.security == "none":
            raise ValueError("a password is only sent encrypted; use security starttls or tls")
        return self


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one message for all recipients."""
    message = EmailMessage(policy=SMTP)
    domain = config.sender.rpartition("@")[2]
    message["Subject"] = shorten(f"{config.subject_prefix} {headline(notification)}".strip(), MAX_SUBJECT)
    message["From"] = config.sender
    message["To"] = ", ".join(config.to)
    message["Date"] = datetime.fromtimestamp(notification.made_ms / 1_000, UTC)
    message["Message-ID"] = f"<{_word(context.webhook_id)}@{domain}>"  # the same over attempts
    message["References"] = f"<{_word(notification.group_key)}@{domain}>"  # one thread for a group
    message["Auto-Submitted"] = "auto-generated"
    _fill(message, notification, context.picture)
    password = config.password.get_secret_value() if config.password else None
    mail = Mail(
        host=config.host, port=config.port, security=config.security, sender=config.sender,
        recipients=tuple(config.to), message=message.as_bytes(), user=config.user, password=password,
    )  # fmt: skip
    return [mail]


def _fill(message: EmailMessage, notification: Notification, picture: bytes | None) -> None:
    shown = notification.alerts[:MAX_CARDS]
    missing = notification.truncated_alerts + len(notification.alerts) - len(shown)
    cut = f"… [cut] {missing} more alerts are not shown" if missing else ""
    texts = [shorten(plain(card), MAX_CARD) for card in shown]
    message.set_content(
        "\n\n".join([headline(notification), *texts, *([cut] if cut else [])]) + "\n", cte="base64"
    )
    message.add_alternative(
        html_of(headline(notification), shown, cut, picture is not None), subtype="html", cte="base64"
    )
    if picture is not None:
        page = message.get_payload()[1]  # type: ignore[index]
        assert isinstance(page, EmailMessage)
        page.add_related(picture, "image", "png", cid=f"<{PICTURE_ID}>", filename="panel.png")


def _word(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


KIND = ChannelKind(
    name="email",
    title="E-mail",
    meaning="Sends text and HTML by SMTP, with the panel as a picture.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
    carries_picture=True,
)
