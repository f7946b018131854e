"""A cluster of Ray on this machine, for tests."""

import contextlib

import pytest

STORE = 100 << 20
# What each of its nodes has.
NODE = {"num_cpus": 1, "object_store_memory": STORE}


@contextlib.contextmanager
def connected(nodes=2):
    """A head and two nodes, or so many, to which this process is connected until the end."""
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args=NODE)
        for _ in range(nodes):
            cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
        ray.shutdown()
        cluster.shutdown()
