"""Declares how an index is served, and refuses what would let strangers in; `kraq serve` has its defaults from here."""

import hmac
import ipaddress
from dataclasses import dataclass

from kraq_dspy.apps.serve.callers import Caller, Callers, require_good
from kraq_dspy.errors import ConfigError

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class ServeSettings:
    """`token` is what a request must bear if one is set, or one of the tokens of `callers`; an address beyond this
    machine needs either.

    `workers` bounds the questions that are answered at the same time, `queue` those that wait for a place; the next
    one is refused (503). `hosts` are names by which the server may be called besides those of this machine and `host`.
    With `no_refuse` no question is refused because the documents do not answer it.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    token: str | None = None
    workers: int = 8
    queue: int = 64
    hosts: tuple[str, ...] = ()
    callers: Callers | None = None
    no_refuse: bool = False

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if not is_local(self.host) and not self.needs_token:
            raise ConfigError(
                f"{self.host!r} can be reached from other machines, so it needs a token: put one into the variable "
                "KRAQ_TOKEN, or several into a file (--tokens). Without one: --host 127.0.0.1"
            )
        if self.token is not None:
            require_good(self.token)
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"--port is {self.port}; a port is a number from 0 to 65535.")

    @property
    def needs_token(self) -> bool:
        return self.token is not None or self.callers is not None

    def caller_of(self, token: str) -> Caller | None:
        """Tell who bears the token; None for one that nobody was given."""
        if self.token and hmac.compare_digest(token.encode(), self.token.encode()):
            return Caller("token")
        return self.callers.of(token) if self.callers and token else None

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Host names that a request may be for; None if all are: an address of every network, behind a token."""
        if self.host in ("0.0.0.0", "::", "") and not self.hosts:
            return None
        return LOCAL | {self.host.lower(), *(name.lower() for name in self.hosts)}


def is_local(host: str) -> bool:
    """Whether nobody on another machine can reach this address."""
    if host in LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
