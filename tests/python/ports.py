"""Ports for servers of tests that cannot take any and say which."""

import contextlib
import random
import socket


def free_port():
    """A port that nobody listens at.

    Systems give ports from 32768 on to whoever asks for any. This is a lower one. However long a server takes to
    begin, no other program of a busy machine is given it meanwhile.
    """
    # Not by a seed: other processes of the same tests look for ports too.
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(20_000, 32_768)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("", port))
            return port
