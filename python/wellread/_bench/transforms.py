"""Transforms of the user's own: `--transform python:package.module:Class`, called with each image.

A class is made without arguments, anything else that can be called is taken as it is. It takes one image as the
framework's array and returns one array. The image is float32 and scaled to [0, 1], C x Y x X (T x C x Z x Y x X of
volumes). Images of one shape must give arrays of one shape and type, or no batch could hold them.
"""

import inspect

import numpy as np

from .errors import TransformError
from .user import Named

NAMED = Named("--transform", "transform", TransformError)


class UserTransform:
    """One of them, and what it gave so far."""

    def __init__(self, name, framework):
        self.name, self.framework = name, framework
        made = NAMED.load(name)
        self.call = NAMED.create(name, made) if inspect.isclass(made) else made
        if not callable(self.call):
            raise TransformError(
                f"--transform {name} makes a {type(self.call).__name__}, which cannot be called with an image; "
                "define __call__"
            )
        self.given = {}
        """By shape of an image: the first place of one, and what its transform was."""

    def apply(self, place, image):
        """Call it with the image of a place such as "row 3"."""
        try:
            return self.call(image)
        except Exception as error:
            raise TransformError(
                f"{place}: --transform {self.name} raised {type(error).__name__}: {error}"
            ) from error

    def check(self, place, shape, found):
        """Its result for an image of this shape must be an array like its earlier ones."""
        if not isinstance(found, (self.framework.array, np.ndarray)):
            raise TransformError(
                f"{place}: --transform {self.name} returned a {type(found).__name__}; "
                f"return one {self.framework.array_name} or numpy.ndarray"
            )
        text = described(found)
        first, before = self.given.setdefault(shape, (place, text))
        if text != before:
            raise TransformError(
                f"{place}: --transform {self.name} returned {text}, and {before} of {first}, an image of equal shape "
                f"{by(shape)}; return one shape and type for images of one shape"
            )

    def note(self):
        """Its results, in words."""
        texts = sorted({text for _, text in self.given.values()})
        return f"gives {', '.join(texts)}"


def by(shape):
    return "x".join(map(str, shape)) or "of no axes"


def described(array):
    """An array's type and shape."""
    return f"{str(array.dtype).removeprefix('torch.')} {by(array.shape)}"


def check(framework, request):
    """Make a transform and call it with an image of random numbers, so that mistakes show before measuring."""
    transform = UserTransform(request["transform"], framework)
    pixels = np.random.default_rng(0).random(request["shape"], np.float32)
    place = "an image of random numbers"
    transform.check(place, tuple(request["shape"]), transform.apply(place, framework.host(pixels)))
    return {"note": transform.note()}
