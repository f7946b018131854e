#!/usr/bin/env python3
"""report-picture.py REPORT PICTURE: the first screen of a report, as README.md shows that of `make demo`.

    REPORT ─▶ Chromium, 1000 wide, down to the first two sentences ─▶ PICTURE, with the names of the report's sections

`make report-picture` calls this script. tests/python/test_report_browser.py fails where the picture is of an older
report: its sections have other names, or other parts come first. A picture shows a result, so the script refuses a
report that measured too little. Below the chart of the answer stand what binds and what to do.
"""

import io
import sys
from pathlib import Path

import chromium
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

WIDTH = 1000


def sections(page) -> str:
    """The names of a report's sections, then the classes of its first parts down to them, one a line."""
    names = page.locator("nav a").all_inner_texts()
    first = page.locator("h1, .lead, #answer > :not(.more), nav").evaluate_all(
        "all => all.map(one => one.className || one.localName)"
    )
    return "\n".join([*names, *first])


def main(report: Path, picture: Path) -> None:
    """Write the picture of a report."""
    program = chromium.program()
    if not program:
        sys.exit("no Chromium here: `make browser` installs one on Debian; WELLREAD_BROWSER names one")
    with sync_playwright() as driver:
        browser = chromium.launch(driver, program)
        page = browser.new_context(viewport={"width": WIDTH, "height": 1140}).new_page()
        page.goto(report.resolve().as_uri())
        title = page.locator("h1").inner_text()
        if "Too short" in title:
            sys.exit(f"{report}: {title}: measure again, with more time")
        kept = PngInfo()
        kept.add_text("sections", sections(page))
        box = page.locator("#answer > .findings").first.bounding_box()
        part = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 20}
        shown = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=part))).convert("RGB")
        browser.close()
    shown.quantize(128, dither=Image.Dither.NONE).save(picture, optimize=True, pnginfo=kept)
    print(f"{picture}: {title}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
