"""What needs a CUDA device: `make test-gpu` on a machine that has one. Elsewhere nothing here is collected."""

try:
    import torch

    has_gpu = torch.cuda.is_available()
except ImportError:
    has_gpu = False

collect_ignore_glob = [] if has_gpu else ["test_*"]
