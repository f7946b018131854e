"""The cost of a set on many nodes: a model of it, and a simulation that checks it (docs/scale.md).

    python benches/scale.py --workload convert --nodes 1,8,64 [--local DIR] [--remote DIR] [--loop DIR] [--FIELD X]
    python benches/scale.py --write docs/scale.md       # writes the page's tables anew

 results of `wellread bench` ─┐
 --FIELD X ───────────────────┴▶ Plan ─┬▶ predict(): the slowest resource, in closed form  scale/scale_plan.py
                                       └▶ simulate(): pieces in queues, event by event     scale/scale_simulation.py

No cluster was measured. The defaults of `Plan` are assumptions, round numbers that stand for no machine. The page's
plan has measured figures of docs/results/ in their place, and --local, --remote and --loop put what `wellread bench`
measured on yours there. It needs nothing but Python 3.10.
"""

import argparse
import csv
import json
import statistics
import sys
from dataclasses import fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "scale"))

from scale_plan import KINDS, Plan, predict
from scale_simulation import simulate

BEGIN, END = "<!-- scale table begin -->", "<!-- scale table end -->"
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
# Measured images: 1080 x 1080 of uint16, in Parquet with Zstandard.
PIXEL_BYTES = 1080 * 1080 * 2
# Images of a part as the program cuts them, of sets in row groups of up to 16 such images. A test compares these with
# python/wellread/ray/_convert.py and crates/wellread-cli/src/commands/embed.rs.
PART_BYTES, GROUP, EMBEDDED = 256 << 20, 16, 4_096
PARTS = {"convert": PART_BYTES // PIXEL_BYTES // GROUP * GROUP, "embed": EMBEDDED}
# Bytes of the page's set.
PETABYTE = 1e15


def rows_of(folder, table, needs):
    """The rows of a table of `wellread bench` that have what is needed."""
    path = Path(folder) / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row.get("status", "ok") == "ok"]
    rows = [row for row in rows if all(row.get(name) for name in needs)]
    if not rows:
        raise ValueError(
            f"{path}: no row has {', '.join(needs)}; measure the set with `wellread bench {table}` again"
        )
    formats = sorted({row["format"] for row in rows})
    if len(formats) > 1:
        raise ValueError(f"{path}: has several formats ({', '.join(formats)}); measure one, with --formats")
    return rows


def median(rows, value):
    return statistics.median(value(row) for row in rows)


def measured(args):
    """Fields of a plan, from what `wellread bench` has measured."""
    found = {}
    if args.local:
        rows = rows_of(args.local, "dataloader", ["limit_read_per_s", "readers"])
        most = max(float(row["readers"]) for row in rows)
        rows = [row for row in rows if float(row["readers"]) == most]
        found["decode_per_s"] = median(rows, lambda r: float(r["limit_read_per_s"]) / float(r["readers"]))
    if args.remote:
        rows = rows_of(args.remote, "dataloader", ["requests", "link_bytes", "num_samples", "limit_link_per_s"])
        found["requests_per_image"] = median(rows, lambda r: float(r["requests"]) / float(r["num_samples"]))
        each = median(rows, lambda r: float(r["link_bytes"]) / float(r["num_samples"]))
        found["bytes_per_image"] = each
        found["link_bytes_per_s"] = each * max(float(row["limit_link_per_s"]) for row in rows)
    if args.loop:
        rows = rows_of(args.loop, "loop", ["compute_p50_s", "batch_size"])
        most = max(float(row["batch_size"]) for row in rows)
        rows = [row for row in rows if float(row["batch_size"]) == most]
        found["gpu_per_s"] = median(rows, lambda r: float(r["batch_size"]) / float(r["compute_p50_s"]))
    return found


def published(results=RESULTS):
    """Fields of a plan from runs that docs/results/ has: the value, and the page that shows the run."""

    def read(name):
        return json.loads((results / f"{name}.json").read_text(encoding="utf-8"))

    runs = read("remote-b")["links"]["b"]["latencies"]["20"]["runs"]["wellread parquet"]
    each = median(runs, lambda run: run["loader_bytes_read_per_used"]) * PIXEL_BYTES
    requests = median(runs, lambda run: run["loader_requests"] / sum(epoch["images"] for epoch in run["epochs"]))
    tables = read("speed")["speed"]["limits"]
    [compressed] = [rows["rows"] for rows in tables if rows["side"] == 1080 and "Zstandard" in rows["title"]]
    [row] = [row for row in compressed if row["format"] == "parquet" and not row["kept"]]
    # The limit is that of two threads.
    decode = statistics.median(row["read"]) / 2
    found = {"bytes_per_image": each, "requests_per_image": requests, "decode_per_s": decode}
    pages = {name: "speed.md" if name == "decode_per_s" else "peers-remote.md" for name in found}
    return {name: (float(f"{value:.3g}"), pages[name]) for name, value in found.items()}


def span(seconds):
    """Seconds for people."""
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds:,.1f} s"


def table(plan, nodes):
    """A row for each number of nodes: the model, the simulation, and the efficiency against one node."""
    lines = [
        "| workload | nodes | bound by (model) | model | simulation | efficiency (simulation) | requests "
        "| over the link | GPU idle |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    # Efficiency is relative to a node that is neither slow nor fails.
    one = simulate(replace(plan, nodes=1, stragglers=0.0, mtbf_s=0.0))
    for n in nodes:
        here = replace(plan, nodes=n)
        model, found = predict(here), simulate(here)
        idle = f"{found.gpu_idle:.0%}" if plan.workload != "convert" else ""
        lines.append(
            f"| {plan.workload} | {n} | {model.bound_by} | {span(model.seconds)} | {span(found.seconds)} "
            f"| {one.seconds / found.seconds / n:.0%} | {found.requests:.3g} "
            f"| {found.link_bytes / 1e12:,.0f} TB | {idle} |"
        )
    return lines


def page_plan(results=RESULTS):
    """What the page shows: a petabyte as it lies in the bucket, and what goes wrong on nodes that are many."""
    measured = {name: value for name, (value, _) in published(results).items()}
    each = measured["bytes_per_image"]
    return Plan(
        **measured, written_per_image=each, images=round(PETABYTE / each), piece=48_000, epochs=3, gpu_per_s=1_800.0,
        bucket_requests_per_s=200_000.0, stragglers=0.02, slowdown=1.5, mtbf_s=30 * 86_400.0, cache_bytes=4e12,
    )  # fmt: skip


PAGE_NODES = (1, 8, 16, 32, 64)


def of_workload(plan, kind):
    """The plan of a workload, with parts as the program cuts them."""
    return replace(plan, workload=kind, part=PARTS.get(kind, 0))


def page_table(plan):
    """The table of docs/scale.md."""
    lines = []
    for kind in KINDS:
        lines += table(of_workload(plan, kind), PAGE_NODES)[2 if lines else 0 :]
    return "\n".join(lines)


def assumptions(plan, sources=None, texts=()):
    """A table of the fields that a simulation is of; with sources, also of the results that fields are from. `texts`
    are shown for values that workloads have of their own."""
    lines = ["| field | value |", "|---|---|"] if sources is None else ["| field | value | from |", "|---|---|---|"]
    lines = [f"{lines[0]} what it is |", f"{lines[1]}---|"]
    for f in fields(Plan):
        if f.name not in ("workload", "nodes"):
            value = getattr(plan, f.name)
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.15g}"
            shown = dict(texts).get(f.name, shown)
            if sources is not None:
                shown += f" | {sources.get(f.name, 'assumed')}"
            lines.append(f"| `{f.name}` | {shown} | {f.metadata['help']} |")
    return "\n".join(lines)


def page(text):
    """A page with its tables as they are now."""
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    sources = {name: f"[measured]({page})" for name, (_, page) in published().items()}
    sources["written_per_image"] = "as many as are read"
    sources["images"] = "a petabyte"
    sources["part"] = "the program's"
    texts = {"part": ", ".join(f"{images:,} ({kind})" for kind, images in PARTS.items())}
    plan = page_plan()
    return f"{before}{BEGIN}\n{page_table(plan)}\n\n{assumptions(plan, sources, texts)}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE.md", help="write the tables of the page anew")
    parser.add_argument("--local", metavar="DIR", help="results of bench dataloader of the set on this machine")
    parser.add_argument("--remote", metavar="DIR", help="results of bench dataloader of the set in its bucket")
    parser.add_argument("--loop", metavar="DIR", help="results of bench loop with the model")
    for f in fields(Plan):
        kind = str if f.name in ("workload", "nodes") else type(f.default)
        parser.add_argument(f"--{f.name.replace('_', '-')}", type=kind, help=f"{f.metadata['help']} ({f.default})")
    args = parser.parse_args()
    if args.write:
        args.write.write_text(page(args.write.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    try:
        given = {f.name: getattr(args, f.name) for f in fields(Plan) if getattr(args, f.name) is not None}
        given.setdefault("part", PARTS.get(given.get("workload", Plan.workload), 0))
        nodes = [int(n) for n in given.pop("nodes", "1,8,64").split(",")]
        plan = replace(Plan(), **(measured(args) | given))
        rows = table(plan, nodes)
        print("\n".join([assumptions(plan), "", *rows]))
    except (OSError, ValueError) as error:
        print(f"scale.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
