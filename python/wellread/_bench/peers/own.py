"""wellread itself, as its Python users call it: the only file here that imports `wellread`."""


class Images:
    """`wellread.Dataset`."""
    tracks = ()
    def __init__(self, path, finish):
        raise NotImplementedError


class Loader(Images):
    tracks = ()
