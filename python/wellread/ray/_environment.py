"""Hands parts of the asking process's environment to processes of nodes: how to ask for sets in buckets, and where
buckets are. Credentials stay where they are: each node has its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# Choices of the link, as `wellread.link` and --in-flight, --link-bytes and --anonymous make them.
CHOICES = (
    *("WELLREAD_IN_FLIGHT", "WELLREAD_LINK_BYTES", "WELLREAD_ANONYMOUS"),
    *("WELLREAD_TIMEOUT", "WELLREAD_ATTEMPTS"),
)
# Where buckets are, and how their servers are spoken to. A node that has a value of its own keeps it.
PLACES = (
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_ALLOW_HTTP", "AWS_SKIP_SIGNATURE", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "AWS_EC2_METADATA_DISABLED"),
    *("AZURE_ALLOW_HTTP", "AZURE_SKIP_SIGNATURE", "AZURE_STORAGE_USE_EMULATOR"),
    *("GOOGLE_SKIP_SIGNATURE", "STORAGE_EMULATOR_HOST"),
)

# What this process had of its own, by the names of what it was told; None where it had nothing.
_told: dict[str, str | None] = {}


def _without_credentials(place: str) -> str:
    """A server's address without name, password and query."""
    return re.sub(r"^(\w[\w+.-]*://)?[^/?#]*@", r"\1", re.sub(r"[?#].*", "", place))


def told() -> dict[str, str]:
    """The variables of this process that nodes are told. A password in an address is a credential."""
    here = os.environ
    choices = {name: here[name] for name in CHOICES if name in here}
    return choices | {name: _without_credentials(here[name]) for name in PLACES if name in here}


def beside(own: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program on a node: its own, and what is told, which does not replace its places."""
    return {**own, **{name: value for name, value in others.items() if name not in PLACES or name not in own}}


def take(others: Mapping[str, str]) -> None:
    """Has this process, which is on a node, do as it is told; what an earlier job has told it counts no more.
    Then it has again what it had of its own."""
    for name in (*CHOICES, *PLACES):
        value = others.get(name)
        if value is None:
            if name in _told:
                own = _told.pop(name)
                if own is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = own
        elif os.environ.get(name) != value and (name in CHOICES or name in _told or name not in os.environ):
            _told.setdefault(name, os.environ.get(name))
            os.environ[name] = value
