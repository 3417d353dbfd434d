"""Send one message by SMTP, over the same guarded connections as HTTP."""

from __future__ import annotations

import smtplib
import socket
import ssl
import time
from contextlib import closing, suppress
from typing import Any

from specscope_server.alerts.channels.contract import Delivered, Mail, Permanent, Retry, Verdict
from specscope_server.alerts.delivery.addresses import AddressPolicy
from specscope_server.alerts.delivery.answers import OF_MAILBOX
from specscope_server.alerts.delivery.connecting import Connector, NotConnected, Resolver, resolve
from specscope_server.alerts.delivery.http import Lost, default_tls


def send_mail(
    mail: Mail, policy: AddressPolicy, seconds: float, *, resolver: Resolver = resolve,
    tls: ssl.SSLContext | None = None,
) -> tuple[Verdict, int | None]:  # fmt: skip
    """Return (what the server meant, its code). Raises `Lost` when it did not say."""
    connector = Connector(policy, time.monotonic() + seconds, resolver)
    context = tls or default_tls()
    progress = {"was_sent": False}
    try:
        with closing(_Session(mail, connector, context)) as session:
            refused = _converse(session, mail, context, progress)
            with suppress(smtplib.SMTPException, OSError):  # it has the message, however it says good-bye
                session.quit()
    except NotConnected as error:
        raise Lost(str(error), was_sent=False) from None
    except smtplib.SMTPResponseException as error:
        return _judged(int(error.smtp_code)), int(error.smtp_code)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [int(code) for code, _ in error.recipients.values()]
        return _judged(min(codes)), min(codes)
    except smtplib.SMTPNotSupportedError:
        return Permanent("the mail server has no STARTTLS or no log-in; see `security`", True), None
    except ssl.SSLCertVerificationError as error:
        raise Lost(
            f"the certificate is not valid for this name: {error.verify_message}", was_sent=False
        ) from None
    except ValueError as error:  # a line break, or letters that SMTP has none for
        what = f"it cannot be sent as mail ({type(error).__name__}); check user, password and addresses"
        return Permanent(what), None
    except (smtplib.SMTPException, OSError) as error:
        reason = "the mail server ended the conversation or took too long"
        raise Lost(f"{reason} ({type(error).__name__})", was_sent=progress["was_sent"]) from None
    return _for_some(refused)


def _converse(
    session: smtplib.SMTP, mail: Mail, context: ssl.SSLContext, progress: dict[str, bool]
) -> dict[str, tuple[int, bytes]]:
    """Say everything; return the recipients that were refused while others were taken."""
    session.ehlo_or_helo_if_needed()
    if mail.security == "starttls":
        session.starttls(context=context)
        session.ehlo_or_helo_if_needed()
    if mail.user is not None and mail.password is not None:
        session.login(mail.user, mail.password)
    progress["was_sent"] = True  # from here on the server may have taken it, whatever comes back
    return session.sendmail(mail.sender, list(mail.recipients), mail.message)


class _Session(smtplib.SMTP):
    """A conversation over a connection that was checked, each wait of which ends at the deadline."""

    def __init__(self, mail: Mail, connector: Connector, context: ssl.SSLContext) -> None:
        self._connector = connector
        self._context = context if mail.security == "tls" else None
        super().__init__(mail.host, mail.port, local_hostname="specscope")

    def _get_socket(self, host: str, port: int, timeout: Any) -> socket.socket:
        connected = self._connector.open_socket(host, port)
        connected.settimeout(max(self._connector.left(), 0.001))
        if self._context is None:
            return connected
        return self._context.wrap_socket(connected, server_hostname=host)

    def send(self, s: Any) -> None:
        """Send, with what is left of the time."""
        self._bound()
        super().send(s)

    def getreply(self) -> tuple[int, bytes]:
        """Read, with what is left of the time."""
        self._bound()
        return super().getreply()

    def _bound(self) -> None:
        left = self._connector.left()
        if left <= 0:
            raise TimeoutError("the mail server took too long")
        if self.sock is not None:
            self.sock.settimeout(left)


def _for_some(refused: dict[str, tuple[int, bytes]]) -> tuple[Verdict, int | None]:
    """Somebody has it: sent again, those would get it twice."""
    return Delivered(), next((code for code, _ in refused.values()), 250)


def _judged(code: int) -> Verdict:
    """RFC 5321 §4.2.1: 4yz is transient, 5yz permanent."""
    if 400 <= code < 500 or code == -1:
        return Retry(f"SMTP {code}")
    hint = "; check user and password" if code in OF_MAILBOX else ""
    return Permanent(f"SMTP {code}: the mail server refuses it{hint}", bool(hint))
