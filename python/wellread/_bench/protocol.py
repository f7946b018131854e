"""Messages between the Rust program and the worker: JSON lines, some followed by bytes.

    stdin   one request per line
    stdout  {"event": "pixels", "bytes": N, ...}\n<N bytes>   any number of these,
            {"event": "done" | "failed", ...}\n               then one of these

Libraries print. The worker therefore keeps the stream it was started with to itself. It sends all other output, by
Python or by C, to stderr, where the program keeps the last lines for its error messages.
"""

import json
import os
import queue
import signal
import threading


class Channel:
    """The two streams. Make it before anything else is imported that may print."""

    def __init__(self):
        self._out = os.fdopen(os.dup(1), "wb")
        requests = os.fdopen(os.dup(0), "rb")
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self._requests = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(requests,), daemon=True).start()

    def _read(self, requests):
        for line in requests:
            self._requests.put(json.loads(line))
        # The program is gone. Whatever is being measured is of no use to anybody: end it, loader workers included.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def receive(self):
        """Wait for the next request."""
        return self._requests.get()

    def send(self, message, payload=None):
        """Send a message; `payload` is a contiguous array whose bytes follow it."""
        if payload is not None:
            payload = memoryview(payload).cast("B")
            message = {**message, "bytes": payload.nbytes}
        self._out.write(json.dumps(message).encode() + b"\n")
        if payload is not None:
            self._out.write(payload)
        self._out.flush()
