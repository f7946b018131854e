"""Batches ahead of their use, for libraries that read a batch by one call and do not read ahead by themselves."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

# Batches asked for ahead unless told otherwise: as many as torch's DataLoader with two workers has (2 for each).
AHEAD = 4


class AheadOfUse:
    """Threads call `read` for the next `ahead` batches of rows; `batches(e)` has those of an epoch."""

    def __init__(self, batches, read, threads, ahead=AHEAD):
        self.batches, self.read, self.ahead = batches, read, ahead
        self.pool = ThreadPoolExecutor(threads)

    def epoch(self, e):
        parts = self.batches(e)
        waiting = deque(self.pool.submit(self.read, part) for part in parts[: self.ahead])
        for part in parts[self.ahead :]:
            batch = waiting.popleft().result()
            waiting.append(self.pool.submit(self.read, part))
            yield batch
        while waiting:
            yield waiting.popleft().result()
