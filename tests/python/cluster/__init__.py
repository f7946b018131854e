"""Tests on a Ray cluster, which is started once for all of them. A package, so that it ends with the last of them."""
