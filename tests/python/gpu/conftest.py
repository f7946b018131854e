"""What needs a CUDA device: `make test-gpu` on a machine that has one. Elsewhere nothing here is collected."""

import pytest

torch = pytest.importorskip("torch")

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*"]
