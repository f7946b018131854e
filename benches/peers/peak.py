"""Peak resident memory of a peer's process."""

import resource


def mb():
    """Of this process, since it runs this program; its workers' are not in it."""
    try:
        with open("/proc/self/status") as status:
            # Not `ru_maxrss`: what the process had that started this one is in it.
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
