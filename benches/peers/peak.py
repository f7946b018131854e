"""Peak resident memory of a peer's process."""

import resource


def mb():
    """Of this process; its workers' are not in it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
