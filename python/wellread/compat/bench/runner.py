"""Upstream's ``bench/runner.py``: inference of ResNet-50 and ViT-B/16, measured by ``wellread infer``.

The names are those of :mod:`wellread.bench`. ``python -m wellread.compat.bench.runner`` takes the arguments of
upstream's command.
"""

import sys

from wellread._command import become
from wellread.bench import (
    BenchmarkConfig,
    BenchmarkError,
    compare_models,
    reset_memory_stats,
    run_benchmark_suite,
    run_inference_benchmark,
)

__all__ = [
    "BenchmarkConfig",
    "BenchmarkError",
    "compare_models",
    "main",
    "reset_memory_stats",
    "run_benchmark_suite",
    "run_inference_benchmark",
]


def main() -> None:
    """``wellread infer`` with the arguments of this process; its exit code ends the process."""
    become(["infer", *sys.argv[1:]])


if __name__ == "__main__":
    main()
