"""Upstream's ``utils.logging``: results in a CSV file."""

from wellread.bench import BenchmarkLogger

__all__ = ["BenchmarkLogger"]
