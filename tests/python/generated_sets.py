"""Sets that `wellread generate` writes in every format, with the checksums that they must have."""

import json

# Pixel type, channels, depth and points in time of the sets that most formats are tried with.
KINDS = [("uint8", 1, 1, 1), ("uint16", 3, 1, 1), ("uint16", 2, 4, 2), ("float32", 1, 3, 1)]


def kind_name(kind):
    """The name of a kind of sets in the names of tests."""
    return f"{kind[0]}-c{kind[1]}z{kind[2]}t{kind[3]}"


def generate(wellread, folder, kind):
    """Write a set of cell images in all formats that can hold it, by its kind.

    Returns its folder, the expected checksums by name, and what each format wrote by format.
    """
    dtype, channels, depth, time = kind
    document = wellread(
        "generate", folder, "--images", 5, "--size", "61x83", "--dtype", dtype,
        "--channels", channels, "--depth", depth, "--time", time,
    )  # fmt: skip
    expected = json.loads((folder / "expected.json").read_text())["images"]
    return folder, {e["name"]: e for e in expected}, {w["format"]: w for w in document["written"]}
