"""The tables of a run of `benches/speed.py`, for docs/speed.md: a function of its JSON file alone.

Each value is of one process, the median of its repeats. A figure is the median over processes with its 95 % interval
(`benches/peers/judge.py`). Shares of limits, and two threads beside one, are ratios within a process.
"""

import statistics

import judge
import page
import plate_page

# Of the benchmark.
RULES = 1
KERNEL, READ = "widening and scaling", "reading and decoding"
NOT_VALID, OPEN = "limit not valid", "open"
BYTES = 4
"""Of a pixel of `float32`."""


def figure(values):
    """A median and its interval, as text."""
    return plate_page.spread(statistics.median(values), *(judge.interval(values) or (None, None)))


def ratios(above, below):
    return [a / b for a, b in zip(above, below, strict=True)]


def nearest(row):
    """The limit that is nearest to two threads, and the share of it in each process. Kept images are not read again.

    A limit is named where the whole interval of the share is at most 1.
    """
    named = {KERNEL: ratios(row["two"], row["kernel"])}
    if not row["kept"]:
        named[READ] = ratios(row["two"], row["read"])
    name = max(named, key=lambda limit: statistics.median(named[limit]))
    shares = named[name]
    if statistics.median(shares) > 1:
        return NOT_VALID, shares
    _, high = judge.interval(shares) or (None, max(shares))
    return name if high <= 1 else OPEN, shares


FIRST = "First epochs are of two threads, from opening on. Their share of later epochs is within a process."


def has_first(table):
    """Whether first epochs were measured; results of before have none."""
    return all(all(row.get("first") or [None]) for row in table["rows"])


def of_limits(table):
    """The lines of a table: a row for each format and cache."""
    first = has_first(table)
    cells = [["format", "kept", "1 thread, images/s", "2 threads, images/s", "ratio",
              *(["first epoch, images/s", "of later epochs"] if first else []), "written, GB/s", f"of {KERNEL}",
              "nearest limit", "of that limit"]]  # fmt: skip
    for row in table["rows"]:
        name, shares = nearest(row)
        written = [rate * BYTES * table["side"] ** 2 / 1e9 for rate in row["two"]]
        cells.append([
            row["format"], "yes" if row["kept"] else "", figure(row["one"]), figure(row["two"]),
            figure(ratios(row["two"], row["one"])),
            *([figure(row["first"]), figure(ratios(row["first"], row["two"]))] if first else []),
            page.number(statistics.median(written)), figure(ratios(row["two"], row["kernel"])), name, figure(shares),
        ])  # fmt: skip
    return plate_page.lines(cells)


def of_counts(rows):
    """The lines of the table by number of images. Growth is the cost of an image over that in the smallest set."""
    cells = [["format", "images", "µs per image", "times the smallest set's", "first batch, ms", "peak memory, MB"]]
    least = {}
    for row in rows:
        seconds = [1e6 / rate for rate in row["rate"]]
        growth = figure(ratios(seconds, least[row["format"]])) if row["format"] in least else ""
        least.setdefault(row["format"], seconds)
        first = [1e3 * one for one in row["first"]]
        memory = page.number(statistics.median(row["mb"])) if all(row["mb"]) else ""
        cells.append([row["format"], f"{row['images']:,}", figure(seconds), growth, figure(first), memory])
    return plate_page.lines(cells)


def section(result):
    """The generated part of docs/speed.md."""
    f, speed = result["facts"], result["speed"]
    if not page.by_rules(result, RULES):
        return f"{page.of_run(f)}.\n\n{page.WITHDRAWN_RULES}"
    found = [
        f"{page.of_run(f)}: {f['rounds']} processes, {f['repeats']} repeats of each variant in each, batches of "
        f"{f['batch']}. Medians over processes with 95 % intervals.",
        "",
    ]
    if any(map(has_first, speed.get("limits", []))):
        found += [FIRST, ""]
    for table in speed.get("limits", []):
        number = f", {table['images']:,} images" if "images" in table else ""
        found += [f"**{table['title']}{number}**", "", *of_limits(table), ""]
    if "count" in speed:
        found += ["**16 x 16 uint8 noise, Zstandard, by number of images**", "", *of_counts(speed["count"]), ""]
    return "\n".join(found).rstrip()


def refused(result):
    """Why a result may not be shown; None where it may."""
    f, speed = result["facts"], result["speed"]
    if f["rounds"] < judge.MIN_ROUNDS:
        return f"{f['rounds']} processes: a page needs {judge.MIN_ROUNDS}"
    missing = [part for part in ("limits", "count") if part not in speed]
    return f"not measured: {', '.join(missing)}" if missing else None


def put(text, result):
    """A page with what stands between its markers replaced."""
    return plate_page.put(text, result, "speed", section)
