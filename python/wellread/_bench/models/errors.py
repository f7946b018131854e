"""Why a model cannot be used; the text says what to do."""

from ..errors import Unusable


class ModelError(Unusable):
    """A model that cannot be had, or does not fit the images."""
