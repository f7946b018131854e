"""Why a model cannot be used; the text says what to do."""


class ModelError(Exception):
    """A model that cannot be had, or does not fit the images."""
