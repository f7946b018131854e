"""Measure two pull requests against their baseline, and fail the one that makes loading slower.

    python examples/gallery/guard_pull_request.py [--data SET] [--processes 3] [--out FOLDER]

SET is a set of images. The first pull request changes nothing that is read; the second stores the images with a codec
that makes smaller files. Both are measured with `wellread bench` and judged by `wellread compare`, whose exit code 3
is what a job of continuous integration fails by.
"""

from pathlib import Path

from _common import generated, options, report, wellread_program
from _picture import BLUE, GREEN, GREY, ORANGE, RED, Chart, Sheet

THRESHOLD = 0.10


def written(source: Path, target: Path, codec: str) -> Path:
    """The set as Parquet with this codec."""
    wellread_program("convert", source, target, "--compression", codec, "--overwrite")
    return target


def measure(images: Path, out: Path, processes: int, seconds: int) -> Path:
    """Results of single images in random order, in so many processes."""
    wellread_program(
        "bench", "dataset", "--input", images, "--in-place", "--access", "random", "--transform", "none",
        "--cache", "none", "--samples", 48, "--processes", processes, "--time-budget", seconds, "--out", out,
    )  # fmt: skip
    return out


def compare(before: Path, after: Path, out: Path) -> tuple[int, dict]:
    """The exit code, 3 for a regression, and the comparison; a table for the pull request is written, too."""
    markdown = ("--markdown", out.with_suffix(".md"))
    code, found = wellread_program(
        "compare", before, after, "--threshold", f"{THRESHOLD:.0%}", *markdown, codes=(0, 3)
    )
    return code, found


def main(arguments=None) -> dict:
    choices = options(__doc__, processes=3, seconds=12, images=96).parse_args(arguments)
    out = choices.out / "guard"
    out.mkdir(parents=True, exist_ok=True)
    shape = ("--size", "256x256", "--channels", "3", "--formats", "parquet")
    source = choices.data or generated("--images", str(choices.images), *shape) / "images.parquet"
    zstd = written(source, out / "baseline.parquet", "zstd")
    deflate = written(source, out / "smaller.parquet", "deflate:9")
    before = measure(zstd, out / "before", choices.processes, choices.seconds)
    requests = []
    for name, images in (("changes no data", zstd), ("zstd becomes deflate:9", deflate)):
        after = measure(images, out / f"after-{len(requests)}", choices.processes, choices.seconds)
        code, found = compare(before, after, out / f"comparison-{len(requests)}")
        row = found["rows"][0]
        kept = {key: row[key] for key in ("quantity", "ratio", "low", "high", "verdict", "reason")}
        size = images.stat().st_size / zstd.stat().st_size
        requests.append({"name": name, "code": code, "comparable": found["comparable"], "size": size, **kept})
        print(f"pull request {len(requests)}, {name}: {row['verdict']}, exit code {code}")
    result = {"processes": choices.processes, "threshold": THRESHOLD, "requests": requests}
    draw(choices.out / "guard_pull_request.png", result)
    return report(choices.out, "guard_pull_request", result)


def draw(path: Path, result: dict) -> None:
    """The ratio of each request with its interval, the threshold, the verdict."""
    requests = result["requests"]
    failed = sum(request["code"] == 3 for request in requests)
    title = f"{failed} of {len(requests)} pull requests fail: time of a random image, after / before"
    sheet = Sheet(900, 250, title)
    ends = [request[end] or request["ratio"] or 1 for request in requests for end in ("low", "high")]
    right = max(1.35, 1.1 * max(ends))
    chart = Chart(sheet, (250, 50, 690, 190), (min(0.8, 0.95 * min(ends)), right), (0, len(requests)), ticks="x")
    chart.line((1, 1), (0, len(requests)), GREY, 1)
    limit = 1 + result["threshold"]
    chart.line((limit, limit), (0, len(requests)), RED, 1)
    chart.words(limit, len(requests), f" threshold {result['threshold']:.0%}", 11, RED, "ld")
    colours = {"slower": RED, "faster": GREEN, "same": BLUE, "unclear": ORANGE}
    for i, request in enumerate(requests):
        y = len(requests) - i - 0.5
        sheet.words(240, chart.place(1, y)[1] - 9, request["name"], 13, anchor="rm")
        sheet.words(240, chart.place(1, y)[1] + 9, f"file: {request['size']:.0%} of the size", 11, GREY, "rm")
        colour = colours[request["verdict"]]
        if request["ratio"]:
            if request["low"] and request["high"]:
                chart.line((request["low"], request["high"]), (y, y), colour, 3)
            chart.point(request["ratio"], y, colour, 5, "white")
        sheet.words(700, chart.place(1, y)[1] - 9, request["verdict"], 13, colour, "lm")
        sheet.words(700, chart.place(1, y)[1] + 9, f"exit code {request['code']}", 11, GREY, "lm")
    said = f"Medians and 95 % intervals over {result['processes']} processes a side; right of 1 is slower."
    sheet.words(250, 222, said, 11, GREY)
    sheet.save(path)


if __name__ == "__main__":
    main()
