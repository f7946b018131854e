"""Upstream's ``utils.data``: batches as the models take them."""

from wellread.bench import create_dataloader

__all__ = ["create_dataloader"]
