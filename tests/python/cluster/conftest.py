"""The cluster of the tests in this folder: one for each process that runs tests."""

import gc

import pytest
import ray_cluster


@pytest.fixture(scope="package")
def cluster():
    """A head and two nodes of one processor each, to which this process is connected."""
    pytest.importorskip("ray")
    with ray_cluster.connected() as cluster:
        yield cluster
    # Tracebacks of errors keep what Ray had here. A child that a later test forks would end by freeing it.
    gc.collect()


@pytest.fixture
def in_order(cluster):
    """Ray Data hands out blocks in order, and shows no progress."""
    import ray

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    return cluster
