"""Tests that need a CUDA device: `make test-gpu` on a machine that has one. Elsewhere nothing here is collected."""

import pytest

try:
    import torch

    has_gpu = torch.cuda.is_available()
except ImportError:
    has_gpu = False

collect_ignore_glob = [] if has_gpu else ["test_*"]


@pytest.fixture(scope="session")
def jax_gpu():
    """The GPU that JAX computes on, if there is a JAX and it has one."""
    try:
        import jax
    except ImportError:
        return None
    device = jax.devices()[0]
    return device if device.platform == "gpu" else None
