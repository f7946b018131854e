"""The choices of a process for its link to sets in buckets and on web servers.

The environment keeps them, so that later processes have them too, forked and spawned ones alike.
"""

import os

from ._check import truth, whole
from ._native import parse_bytes


def link(*, in_flight: int | None = None, link_bytes: int | str | None = None, anonymous: bool | None = None) -> None:
    """Choose the link to sets in buckets, before this process opens the first of them.

    An argument that is left out keeps its value, or takes that of the environment (``WELLREAD_IN_FLIGHT``,
    ``WELLREAD_LINK_BYTES``, ``WELLREAD_ANONYMOUS``).

    Args:
        in_flight: requests at once (128).
        link_bytes: bytes that a loader fetches ahead and has not read yet, at most: a number or such as ``"1GiB"``
            (256 MiB). A loader with a bound on memory holds less.
        anonymous: whether requests are not signed, whatever credentials there are, as public buckets have it.

    Raises:
        TypeError: a value of another type.
        ValueError: a number out of range, or a text that is no size.
    """
    if in_flight is not None:
        os.environ["WELLREAD_IN_FLIGHT"] = str(whole("in_flight", in_flight, 1, 4096))
    if link_bytes is not None:
        try:
            size = parse_bytes(link_bytes) if isinstance(link_bytes, str) else whole("link_bytes", link_bytes, 1)
        except ValueError as error:
            raise ValueError(f"link_bytes: {error}" if isinstance(link_bytes, str) else str(error)) from None
        os.environ["WELLREAD_LINK_BYTES"] = str(size)
    if anonymous is not None:
        os.environ["WELLREAD_ANONYMOUS"] = "1" if truth("anonymous", anonymous) else "0"
