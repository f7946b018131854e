"""Upstream's package ``utils``."""
