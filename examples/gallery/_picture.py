"""Pictures of the gallery: images, charts and words on a white sheet, drawn by Pillow alone.

    Sheet(width, height, title) ── image(), words(), chart() ──▶ save(): PNG below `MOST_BYTES`

A sheet is drawn at twice its size and made smaller at the end, so that lines and letters are smooth.
"""

import itertools
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

INK, GREY, PALE = "#222222", "#777777", "#dddddd"
BLUE, ORANGE, GREEN, RED, PURPLE = "#3b6fb6", "#d9822b", "#4a9a5b", "#c0453f", "#7e5ba6"
# Pages show small pictures: a larger file says no more.
MOST_BYTES = 150_000
ZOOM = 2


class Sheet:
    """A white sheet with a title; places are pixels from its upper left corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.picture = Image.new("RGB", (ZOOM * width, ZOOM * height), "white")
        self.draw = ImageDraw.Draw(self.picture)
        self.images: list[tuple[int, int, int, int]] = []
        self.words(12, 8, title, size=17)

    def words(self, x: float, y: float, text: str, size: int = 12, fill: str = INK, anchor: str = "la") -> None:
        """Writes a text; `anchor` is Pillow's."""
        font = ImageFont.load_default(ZOOM * size)
        # Pillow's own font has no µ.
        self.draw.text((ZOOM * x, ZOOM * y), text.replace("µ", "u"), fill=fill, font=font, anchor=anchor)

    def image(self, box: tuple[float, float, float, float], pixels: np.ndarray, frame: str | None = None) -> None:
        """Draws (Y, X, 3) or (Y, X) uint8 into (left, top, right, bottom), its middle where the shape differs."""
        left, top, right, bottom = (round(ZOOM * at) for at in box)
        height, width = pixels.shape[:2]
        scale = max((right - left) / width, (bottom - top) / height)
        crop_x, crop_y = (width - (right - left) / scale) / 2, (height - (bottom - top) / scale) / 2
        piece = Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")
        piece = piece.resize(
            (right - left, bottom - top), Image.Resampling.LANCZOS, (crop_x, crop_y, width - crop_x, height - crop_y)
        )
        self.picture.paste(piece, (left, top))
        self.images.append((left, top, right, bottom))
        if frame:
            self.draw.rectangle((left, top, right, bottom), outline=frame, width=2 * ZOOM)

    def save(self, path: Path) -> None:
        """Writes a PNG of as many colours as fit into `MOST_BYTES`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        small = self.picture.reduce(ZOOM)
        beside = np.ones((small.height, small.width), bool)
        for left, top, right, bottom in self.images:
            beside[top // ZOOM : bottom // ZOOM + 1, left // ZOOM : right // ZOOM + 1] = False
        for colours in (256, 128, 64, 32):
            _reduced(small, beside, colours).save(path, optimize=True)
            if path.stat().st_size <= MOST_BYTES:
                return
        raise ValueError(f"{path}: {path.stat().st_size} bytes: draw fewer or smaller images")


def _reduced(picture: Image.Image, beside: np.ndarray, colours: int) -> Image.Image:
    """The picture in so many colours. Sixteen are greys for words, which the colours of images would tint."""
    own = colours - 16
    reduced = picture.quantize(own, dither=Image.Dither.NONE)
    pixels = np.asarray(picture).astype(int)
    grey = beside & (np.ptp(pixels, 2) <= 12)
    indices = np.where(grey, own + np.rint(pixels.mean(2) / 17), np.asarray(reduced)).astype(np.uint8)
    palette = reduced.getpalette()[: 3 * own]
    palette += [0] * (3 * own - len(palette)) + [17 * level for level in range(16) for _ in "rgb"]
    named = Image.fromarray(indices)
    named.putpalette(palette)
    return named


class Chart:
    """Two axes in a box of a sheet; places have the units of the axes. `ticks` names the axes with numbers."""

    def __init__(
        self,
        sheet: Sheet,
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        title: str = "",
        x_title: str = "",
        y_title: str = "",
        ticks: str = "xy",
        logarithmic: bool = False,
    ) -> None:
        self.sheet, self.box, self.logarithmic = sheet, box, logarithmic
        self.ends = (_log(x), _log(y)) if logarithmic else (x, y)
        left, top, right, bottom = box
        sheet.draw.rectangle([ZOOM * at for at in box], outline=PALE, width=ZOOM)
        sheet.words(left, top - 20, title, size=13)
        sheet.words((left + right) / 2, bottom + (20 if "x" in ticks else 6), x_title, 11, GREY, "ma")
        # Along the axis it would need a rotated text; above it everybody reads it.
        sheet.words(left, top - 5 if not title else top + 4, y_title, 11, GREY, "ld" if not title else "la")
        if "x" in ticks:
            for at in _ticks(x, logarithmic):
                sheet.words(self.place(at, y[0])[0], bottom + 5, _number(at), 10, GREY, "ma")
        if "y" in ticks:
            for at in _ticks(y, logarithmic):
                sheet.words(left - 4, self.place(x[0], at)[1], _number(at), 10, GREY, "rm")

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where on the sheet a point of the chart is."""
        left, top, right, bottom = self.box
        if self.logarithmic:
            x, y = math.log10(x), math.log10(y)
        (x0, x1), (y0, y1) = self.ends
        return left + (x - x0) / (x1 - x0) * (right - left), bottom - (y - y0) / (y1 - y0) * (bottom - top)

    def line(self, xs, ys, colour: str = BLUE, width: float = 1.5) -> None:
        """Joins points by lines."""
        places = [tuple(ZOOM * at for at in self.place(x, y)) for x, y in zip(xs, ys, strict=True)]
        self.sheet.draw.line(places, fill=colour, width=round(ZOOM * width), joint="curve")

    def point(self, x: float, y: float, colour: str = BLUE, radius: float = 2.5, ring: str | None = None) -> None:
        """Draws a dot, or a larger one with a ring."""
        px, py = (ZOOM * at for at in self.place(x, y))
        r = ZOOM * radius
        self.sheet.draw.ellipse((px - r, py - r, px + r, py + r), fill=colour, outline=ring, width=ZOOM)

    def words(self, x: float, y: float, text: str, size: int = 11, fill: str = INK, anchor: str = "lm") -> None:
        """Writes a text at a point of the chart."""
        self.sheet.words(*self.place(x, y), text, size, fill, anchor)


def names(sheet: Sheet, dots: list[tuple[float, float, str, str, bool]], size: int = 9) -> None:
    """Writes names beside dots (x, y, name, colour, whether it is left of the dot), so that none touches another."""
    font = ImageFont.load_default(ZOOM * size)
    taken = [(x - 6, x + 6, y) for x, y, *_ in dots]
    for x, y, name, colour, left in sorted(dots, key=lambda dot: dot[1]):
        wide = sheet.draw.textlength(name, font=font) / ZOOM
        begin = x - 10 - wide if left else x + 10
        # The nearest place above or below that is free.
        places = (y + sign * move for move in itertools.count() for sign in (1, -1))
        free = next(
            place
            for place in places
            if not any(a < begin + wide and begin < b and abs(place - at) < size + 2 for a, b, at in taken)
        )
        taken.append((begin, begin + wide, free))
        sheet.words(begin, free, name, size, colour, "lm")


def scatter(sheet: Sheet, box, points: np.ndarray, groups, colours: dict, title: str, radius: float = 2.5) -> None:
    """Points (N, 2) of an embedding, coloured by group, with a legend below; their axes have no unit."""
    low, high = points.min(0), points.max(0)
    margin = 0.04 * (high - low) + 1e-9
    (x0, y0), (x1, y1) = low - margin, high + margin
    chart = Chart(sheet, box, (x0, x1), (y0, y1), title, ticks="")
    # Groups in turns, so that none hides another.
    for i in np.random.default_rng(0).permutation(len(points)):
        chart.point(*points[i], colours[groups[i]], radius)
    x, y = box[0], box[3] + 8
    for name, colour in colours.items():
        sheet.draw.ellipse([ZOOM * at for at in (x, y + 2, x + 8, y + 10)], fill=colour)
        sheet.words(x + 12, y + 6, str(name), 11, INK, "lm")
        x += 26 + 6.5 * len(str(name))


def colours_of(planes: np.ndarray, dna: int) -> np.ndarray:
    """(C, Y, X) from 0 to 1 as (Y, X, 3) uint8: DNA is blue, others are green, red and so on."""
    others = [(0.1, 1.0, 0.25), (1.0, 0.25, 0.15), (1.0, 0.8, 0.1), (0.9, 0.2, 0.9)]
    tints = [others[c % len(others)] for c in range(len(planes) - 1)]
    tints.insert(dna, (0.25, 0.45, 1.0))
    mixed = np.einsum("cyx,ct->yxt", np.clip(planes, 0, 1) ** 0.7, np.array(tints))
    return (255 * np.clip(mixed, 0, 1)).astype(np.uint8)


def grey(plane: np.ndarray) -> np.ndarray:
    """(Y, X) from 0 to 1 as uint8."""
    return (255 * np.clip(plane, 0, 1) ** 0.7).astype(np.uint8)


def outline(mask: np.ndarray, width: int = 2) -> np.ndarray:
    """The pixels of a mask (Y, X) that lie within `width` pixels of its border."""
    inside = mask
    for _ in range(width):
        padded = np.pad(inside, 1, mode="edge")
        inside = inside & padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
    return mask & ~inside


def _log(ends: tuple[float, float]) -> tuple[float, float]:
    return math.log10(ends[0]), math.log10(ends[1])


def _ticks(ends: tuple[float, float], logarithmic: bool) -> list[float]:
    """A few round numbers between both ends."""
    low, high = ends
    if logarithmic:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            found = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
            if len(found) >= 3:
                return found
        # Ends that are close: steps of one size.
    raw = (high - low) / 4
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * d for d in (1, 2, 5, 10) if power * d >= raw)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
