"""The timed work: one file per benchmark, each with `turn(worker, request)`.

A turn opens, warms up where the request says so, and reads the clock around what a user would call. It answers
with raw nanoseconds, less what the clock itself cost. It computes no statistics: the program does that for every
framework alike.
"""

from .. import peers
from ..images import Finish


def open_reader(request, framework):
    """The request's reader, opened."""
    reader = peers.find(request["reader"], request["format"]).load()
    finish = Finish(tuple(request["crop"]) if request["crop"] else None, request["scale"], request["dtype"])
    if getattr(reader, "knows_framework", False):
        # Files of a copy are an image each, whatever their names look like.
        of_copies = getattr(reader, "knows_layouts", False) and request.get("copies", False)
        more = {"layout": "files"} if of_copies else {}
        return reader(request["path"], finish, framework.name, **more)
    # Files of rows, in their order, where each row is a file.
    if getattr(reader, "takes_files", False):
        return reader(request["path"], finish, request.get("files"))
    return reader(request["path"], finish)
