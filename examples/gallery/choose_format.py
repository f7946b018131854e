"""Choose a format for a screen of a million images, from a sample of a few.

    python examples/gallery/choose_format.py [--data SAMPLE] [--images 1000000] [--formats all] [--out FOLDER]

SAMPLE is some images of the screen, in any format. `wellread advise` writes them in every format and codec of the
build and measures each. The script scales size and time to the screen. It chooses by cold files, since a screen does
not fit into memory.
"""

from pathlib import Path

from _common import generated, options, report, wellread_program
from _picture import BLUE, GREY, ORANGE, PURPLE, RED, Chart, Sheet, names

TINTS = (BLUE, ORANGE, PURPLE, "#4a9a5b", "#7a5230", "#2aa198", "#b58900", "#555555")


def advise(sample: Path, formats: str, seconds: int) -> dict:
    """The findings of `wellread advise`."""
    return wellread_program("advise", sample, "--formats", formats, "--time-budget", seconds)[1]


def scaled(found: dict, images: int) -> list[dict]:
    """Every way of storing the images, with the terabytes and the hours of an epoch of the screen."""
    ways = []
    for tried in found["tried"]:
        warm, cold = tried["images_per_s"], tried["cold_images_per_s"]
        speed = cold or warm
        if not speed["value"]:
            continue
        ways.append(
            {
                "name": tried["name"],
                "format": tried["format"],
                "terabytes": tried["bytes_per_image"] * images / 1e12,
                "hours": images / speed["value"] / 3600,
                # Of a slow rate the epoch is long.
                "hours_least": images / (speed["high"] or speed["value"]) / 3600,
                "cold": cold is not None,
            }
        )
    return ways


def choose(ways: list[dict], slack: float = 1.1) -> dict:
    """The smallest of those that are as fast as the fastest from cold files, as far as intervals tell."""
    measured = [way for way in ways if way["cold"]] or ways
    fastest = min(way["hours"] for way in measured)
    eligible = [way for way in measured if way["hours_least"] <= slack * fastest]
    return min(eligible, key=lambda way: way["terabytes"])


def main(arguments=None) -> dict:
    parser = options(__doc__, images=1_000_000, seconds=60)
    parser.add_argument("--formats", default="all", help="formats to try (default: all of the build)")
    choices = parser.parse_args(arguments)
    shape = ("--images", "48", "--size", "540x540", "--channels", "3", "--formats", "tiff")
    sample = choices.data or generated(*shape) / "tiff"
    found = advise(sample, choices.formats, choices.seconds)
    ways = scaled(found, choices.images)
    chosen = choose(ways)
    _, channels, _, height, width = found["sample"]["shape_tczyx"]
    result = {
        "images": choices.images,
        "image": f"{channels} x {height} x {width} {found['sample']['dtype']}",
        "chosen": chosen["name"],
        "terabytes": chosen["terabytes"],
        "hours": chosen["hours"],
        "ways": ways,
    }
    draw(choices.out / "choose_format.png", result)
    return report(choices.out, "choose_format", result)


def draw(path: Path, result: dict) -> None:
    """Size and hours of every way, the chosen one ringed; measured cold where filled, else warm."""
    ways, images = result["ways"], result["images"]
    sheet = Sheet(900, 430, f"{images:,} images of {result['image']}. Smallest of the fastest: {result['chosen']}")
    ends = [(min(way[axis] for way in ways) / 1.15, 1.15 * max(way[axis] for way in ways)) for axis in AXES]
    x_title, y_title = "size of the screen, TB (log)", "hours of an epoch on one machine (log)"
    chart = Chart(sheet, (60, 66, 600, 370), *ends, y_title, x_title, logarithmic=True)
    colours = dict(zip(dict.fromkeys(way["format"] for way in ways), TINTS * 3, strict=False))
    dots = []
    for way in sorted(ways, key=lambda way: (way["cold"], way["name"] == result["chosen"])):
        x, y, colour = way["terabytes"], way["hours"], colours[way["format"]]
        chart.point(x, y, colour if way["cold"] else "white", 4, colour)
        if way["name"] == result["chosen"]:
            chart.point(x, y, colour, 7, RED)
        dots.append((*chart.place(x, y), way["name"], colour, x * x > ends[0][0] * ends[0][1]))
    names(sheet, dots)
    y = 70
    for name, colour in colours.items():
        sheet.words(625, y, name, 13, colour)
        y += 18
    rest = "filled: from cold files;  open: from memory alone"
    sheet.words(625, y + 12, rest, 11, GREY)
    for i, way in enumerate(sorted((way for way in ways if way["cold"]), key=lambda way: way["hours"])[:8]):
        line = f"{way['terabytes']:.2f} TB, {way['hours']:.1f} h  {way['name']}"
        sheet.words(625, y + 42 + 18 * i, line[:46], 11, RED if way["name"] == result["chosen"] else "#222222")
    sheet.words(60, 408, "Scaled from a sample. Ringed in red: the smallest of the fastest.", 11, GREY)
    sheet.save(path)


AXES = ("terabytes", "hours")

if __name__ == "__main__":
    main()
