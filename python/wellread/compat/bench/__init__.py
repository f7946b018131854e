"""Upstream's package ``bench``."""
