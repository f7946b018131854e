"""Errors whose text is meant for the user as it is."""


class Unusable(Exception):
    """What was asked for cannot be had on this machine; the text says why and what to do."""


class TransformError(Unusable):
    """A transform of the user's own that cannot be had, or gives what cannot be used."""
