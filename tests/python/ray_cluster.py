"""A cluster of Ray on this machine, for tests, and what they look at."""

import contextlib
import hashlib
import os
import time
from pathlib import Path

import pytest

STORE = 100 << 20
# What each of its nodes has.
NODE = {"num_cpus": 1, "object_store_memory": STORE}
# What each has of its own for buckets: credentials, which nobody tells it.
OWN = {
    "AWS_ACCESS_KEY_ID": "of-the-node", "AWS_SECRET_ACCESS_KEY": "a-secret-that-nobody-prints",
    "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}  # fmt: skip


@contextlib.contextmanager
def connected(nodes=2):
    """A head and two nodes, or so many, to which this process is connected until the end."""
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Other tests beside these take memory, too: Ray would end tasks where little is left.
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        with pytest.MonkeyPatch.context() as of_nodes:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                of_nodes.delenv(name)
            for name, value in OWN.items():
                of_nodes.setenv(name, value)
            cluster = Cluster(initialize_head=True, head_node_args=NODE)
            for _ in range(nodes):
                cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def wait_for(nodes):
    """Waits until Ray knows of so many nodes and no more: it takes a while to know that one is gone."""
    import ray
    from wellread.ray import _commands

    deadline = time.monotonic() + 600
    while len(_commands.whole_nodes(ray)) != nodes and time.monotonic() < deadline:
        time.sleep(0.2)


def occupy(names):
    """Takes a processor of each of these nodes, as long as the result lives."""
    import ray

    class Busy:
        def is_there(self):
            return True

    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    make = ray.remote(num_cpus=1)(Busy)
    busy = [make.options(scheduling_strategy=strategy(name, soft=False)).remote() for name in names]
    ray.get([one.is_there.remote() for one in busy])
    return busy


def images_of(dataset):
    """Names and pixels of a set."""
    pixels = [dataset[row] for row in range(len(dataset))]
    return [(dataset.name(row), image.dtype, image.shape, image.tobytes()) for row, image in enumerate(pixels)]


def files(folder):
    """All files below a folder, by what is in them."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def hidden(folder):
    """The remains of output that is not finished."""
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


def cells_table(folder, path):
    """A table of thirty cells of the images of a set, those of an image far apart."""
    import wellread as wr

    dataset = wr.Dataset(path)
    lines = ["Image_FileName_DNA,Nuclei_Location_Center_X,Nuclei_Location_Center_Y,Nuclei_AreaShape_Area"]
    for cell in range(30):
        name = dataset.name(cell * 7 % len(dataset))
        lines.append(f"{name}.tif,{12 + cell},{14 + cell % 17},{cell}")
    table = folder / "cells.csv"
    table.write_text("\n".join(lines) + "\n")
    return table
