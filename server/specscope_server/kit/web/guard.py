"""Who asks: the token of the settings (admin), or one of the database with its scope.

Looked up in the database are digests, never tokens, so that the time a look-up takes tells nothing about a
token. What was found is believed for `BELIEVED_SECONDS`: that long a revoked token may still be used.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from specscope_server.kit.clock import Clock
from specscope_server.kit.web.scopes import Grant, Scope, TokenStore
from specscope_server.kit.web.throttle import Throttle

BELIEVED_SECONDS = 3.0
MOST_BELIEVED = 1_024
SETTINGS_TOKEN = Grant(0, "SPECSCOPE_TOKEN", Scope.ADMIN, "")


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token, hex."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_same(given: str, wanted: str) -> bool:
    """Compare in constant time (of the digests, so that not even the length shows)."""
    return hmac.compare_digest(digest_of(given), digest_of(wanted))


def session_cookie(token: str, expires_ms: int, grant: Grant = SETTINGS_TOKEN) -> str:
    """Return a cookie value that proves knowledge of a token without holding it.

    ``token`` is the one of the settings: it signs, so that who reads the database can forge nothing.
    """
    signed = f"session:{expires_ms}:{grant.id}:{grant.digest}" if grant.id else f"session:{expires_ms}"
    signature = hmac.new(token.encode(), signed.encode(), hashlib.sha256).hexdigest()
    return f"{expires_ms}.{signature}.{grant.id}" if grant.id else f"{expires_ms}.{signature}"


def is_session(value: str, token: str, now_ms: int, grant: Grant = SETTINGS_TOKEN) -> bool:
    """Tell whether a cookie value was made by `session_cookie` for this grant and has not expired."""
    expires, _, _ = value.partition(".")
    if not (expires.isascii() and expires.isdigit() and len(expires) <= 15):
        return False
    return is_same(value, session_cookie(token, int(expires), grant)) and int(expires) > now_ms


class Guard:
    """Finds who asks. All but `recently` may block on the database, and raise what it raises."""

    def __init__(
        self,
        token: str,
        clock: Clock,
        tokens: TokenStore | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.throttle = Throttle(clock)
        self._token = token
        self._clock = clock
        self._tokens = tokens
        self._monotonic = monotonic
        self._believed: OrderedDict[str, tuple[float, Grant]] = OrderedDict()
        self._lock = threading.Lock()

    def recently(self, credential: str) -> Grant | None:
        """Return who presented this token or cookie a moment ago; None: find out."""
        with self._lock:
            until, grant = self._believed.get(digest_of(credential), (0.0, None))
        return grant if until > self._monotonic() else None

    def of_token(self, token: str) -> Grant | None:
        """Return whose token this is."""
        if is_same(token, self._token):
            return self._believe(token, SETTINGS_TOKEN)
        if self._tokens is None:
            return None
        digest = digest_of(token)
        found = self._tokens.by_digest(digest)
        if found is None or not hmac.compare_digest(found.digest, digest):
            return None
        self._tokens.note_use(found.id)
        return self._believe(token, found)

    def of_cookie(self, cookie: str) -> Grant | None:
        """Return whose session this is."""
        if is_session(cookie, self._token, self._clock()):
            return self._believe(cookie, SETTINGS_TOKEN)
        token_id = cookie.rpartition(".")[2] if cookie.count(".") == 2 else ""
        if self._tokens is None or not (token_id.isascii() and token_id.isdigit() and len(token_id) <= 15):
            return None
        found = self._tokens.by_id(int(token_id))
        if found is None or not is_session(cookie, self._token, self._clock(), found):
            return None
        self._tokens.note_use(found.id)
        return self._believe(cookie, found)

    def cookie_for(self, grant: Grant, expires_ms: int) -> str:
        """Return the cookie value of a new session."""
        return session_cookie(self._token, expires_ms, grant)

    def _believe(self, credential: str, grant: Grant) -> Grant:
        key = digest_of(credential)
        with self._lock:
            self._believed.pop(key, None)
            self._believed[key] = (self._monotonic() + BELIEVED_SECONDS, grant)
            while len(self._believed) > MOST_BELIEVED:
                self._believed.popitem(last=False)
        return grant
