"""Says how an index is served: where, to whom, and how much at once."""

import ipaddress
from dataclasses import dataclass, replace

from kraq_dspy.errors import ConfigError

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class ServeSettings:
    """`token` is what a request must bear where one is set; an address beyond this machine needs one.

    `rate` bounds the requests of one client a second (0: no bound), with bursts of ten seconds' worth. `at_once` bounds
    the questions that are answered at the same time, `waiting` those that wait for a place; the next one is refused
    (503). `connections` bounds all requests under way. `hosts` are names by which the server may be called besides
    those of this machine and `host`; `origins` are web pages of elsewhere that may call it. `workers` are the processes
    among which `at_once`, `waiting` and `connections` are divided; each counts `rate` for itself.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    token: str | None = None
    edit: bool = False
    body_bytes: int = 1 << 20
    rate: float = 20.0
    at_once: int = 8
    waiting: int = 64
    connections: int = 512
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if not is_local(self.host) and not self.token:
            raise ConfigError(
                f"{self.host!r} can be reached from other machines, so it needs a token: --token, or the variable "
                "KRAQ_TOKEN. Without one: --host 127.0.0.1"
            )
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or " " in self.token):
            raise ConfigError(
                "The token must have 8 characters or more, of ASCII and without spaces. A good one: "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"--port is {self.port}; a port is a number from 0 to 65535.")
        for name in ("body_bytes", "at_once", "connections", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if self.rate < 0 or self.waiting < 0:
            raise ConfigError(f"rate ({self.rate:g}) and waiting ({self.waiting}) must be 0 or more.")
        if self.at_once < self.workers:
            raise ConfigError(
                f"{self.workers} workers divide the {self.at_once} questions that are answered at once between them: "
                "take fewer --workers, or a larger --at-once."
            )

    def of_worker(self) -> "ServeSettings":
        """Those of one of the processes, with its part of what may be under way."""
        parts = {name: getattr(self, name) // self.workers for name in ("at_once", "waiting", "connections")}
        return replace(self, **{**parts, "connections": max(1, parts["connections"])}, workers=1)

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Host names that a request may be for; None where all are: an address of every network, behind a token."""
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
