"""Errors whose text is meant for the user as it is."""


class Unusable(Exception):
    """This machine lacks something that was asked for; the text says why and what to do."""


class TransformError(Unusable):
    """A transform of the user's own that cannot be had, or gives what cannot be used."""
