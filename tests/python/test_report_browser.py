"""Reports of the real binary in a real browser: nothing fails, and nothing is asked of the network. All of it
works by pointer and by keyboard, and axe-core finds nothing that keeps a person out."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

KINDS = ["bench", "infer", "tasks"]


@pytest.fixture(scope="session")
def report(wellread, tmp_path_factory):
    """The report of a small run of all tracks, drawn again from what is on disk."""
    out = tmp_path_factory.mktemp("browser") / "results"
    wellread(
        "bench", "all", "--framework", "rust", "--images", 24, "--size", "32x32", "--kind", "cells",
        "--formats", "parquet,tiff", "--repeats", 2, "--batch-size", 8, "--batch-sizes", "4,8", "--workers", "0",
        "--steps", 2, "--samples", 24,
        "--transform", "none", "--access", "random,sequential", "--time-budget", 1000, "--out", out,
    )  # fmt: skip
    wellread("report", out)
    return out / "report.html"


@pytest.fixture(scope="session")
def infer_report(wellread, tmp_path_factory):
    """The report of a small run of `wellread infer`, drawn again."""
    folder = tmp_path_factory.mktemp("browser_infer")
    said = wellread(
        "infer", "--framework", "candle", "--model", "resnet50", "--batch-sizes", 1, 2, "--iterations", 3,
        "--warmup", 0, "--input-shape", "3,32,32", "--device-prefer", "cpu", "--model-dir", folder / "models",
        "--output-dir", folder,
    )  # fmt: skip
    results = Path(said["csv"]).with_suffix("")
    wellread("report", results)
    return results / "report.html"


# What a task of the adapter for any program does: it tells its phases, here those of a loop that never ran.
PHASES = """\
cat >> "$WELLREAD_PHASES" <<'END'
{"phase":"data_setup","elapsed_seconds":SETUP,"peak_memory_mb":80}
{"samples":"batch_loading","seconds":[LOADING],"warm_up":1}
{"samples":"batch_step","seconds":[STEP],"warm_up":1}
END
"""


@pytest.fixture(scope="session")
def tasks_report(wellread, tmp_path_factory):
    """The report of `wellread tasks` of two branches, the second of which loads slower."""
    folder = tmp_path_factory.mktemp("browser_tasks")
    repository = folder / "repo"
    script = repository / "configs" / "experiment" / "e.sh"
    script.parent.mkdir(parents=True)

    def git(*args):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", repository, *identity, *args], check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    for branch, factor in [("main", 1.0), ("slow", 1.5)]:
        if branch != "main":
            git("checkout", "--quiet", "-b", branch)
        times = [f"{factor * (0.02 + 0.001 * (i % 5)):.4f}" for i in range(20)]
        said = {"SETUP": f"{factor:.1f}", "LOADING": ",".join(times), "STEP": ",".join(["0.05", "0.04"] * 10)}
        text = PHASES
        for name, value in said.items():
            text = text.replace(name, value)
        script.write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "-m", branch)
    (folder / "tasks.csv").write_text("branch,experiment\nmain,e\nslow,e\n")
    with pytest.MonkeyPatch.context() as patch:
        # Worktrees go there.
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        done = wellread(
            "tasks", "train", "--config", folder / "tasks.csv", "--output", folder / "out.json", "--repo", repository,
            "--repeats", 3, "--compare",
        )  # fmt: skip
    page = Path(done["report"])
    wellread("report", page.parent)
    return page


@pytest.fixture(scope="session")
def reports(request):
    """The report of a command."""
    fixtures = dict(zip(KINDS, ["report", "infer_report", "tasks_report"], strict=True))
    return lambda kind: request.getfixturevalue(fixtures[kind])


@pytest.fixture
def opened(browser, report):
    """Opens the report; fails at the end if the page complained or asked for anything but itself."""
    pages = []

    def open_(path=report, unfolded=True, **settings):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        # Long enough for a machine that is busy with other things.
        context.set_default_timeout(180_000)
        page = context.new_page()
        page.wrong = []
        page.on("console", lambda said: page.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("request", lambda asked: None if is_own(asked.url, path) else page.wrong.append(asked.url))
        page.goto(Path(path).as_uri())
        # What is folded is looked at too; a test of its own folds it.
        if unfolded:
            page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        pages.append(page)
        return page

    yield open_
    for page in pages:
        wrong = page.wrong
        page.context.close()
        assert not wrong, wrong


def is_own(url, path):
    """The page itself, and the pictures that lie in it."""
    return url.startswith("data:") or url.split("#")[0] == Path(path).as_uri()


def words_of(plot):
    """The text below a figure."""
    return plot.locator("output").inner_text()


def numbers(table, head):
    """The numbers of a column whose rows are shown, from top to bottom."""
    rows, at = table.locator("tbody tr:visible"), head.evaluate("h => h.cellIndex")
    return [float(v) for v in rows.evaluate_all(f"rows => rows.map(r => r.cells[{at}].dataset.v)") if v]


def test_every_track_has_its_charts(opened):
    page = opened()
    for name in ["storage", "dataset", "dataloader", "loop", "conversion"]:
        plot = page.locator(f"#plot-{name}")
        assert plot.locator("figure.chart > svg").is_visible(), name
        assert plot.locator("g.mark").count() >= 2, name
        assert page.locator(f"#bench-{name} .pictures, #bench-{name} table.results tbody tr").count() >= 2
    for name in ["dataset", "dataloader", "loop"]:
        for view in ["distribution", "timeline"]:
            assert page.locator(f"#plot-{name}_{view} g.mark").count() >= 2, (name, view)
    assert page.locator("#answer .findings li").count() >= 2
    pictures = page.locator("ul.pictures img")
    assert pictures.count() >= 4
    assert all(pictures.nth(i).evaluate("i => i.naturalWidth > 10") for i in range(pictures.count()))
    # Each says which image it is, to those too who do not see it.
    said = pictures.evaluate_all("all => all.map(i => [i.alt, i.closest('figure').textContent])")
    assert all(caption and alt == f"Thumbnail of {caption}" for alt, caption in said), said


def test_the_answer_is_a_chart_then_a_sentence_and_what_is_more_is_folded(opened):
    page = opened(unfolded=False)
    answer, first = page.locator("#answer"), page.locator("#answer .findings li").first
    parts = ["h1", ".lead", "#plot-decision svg", ".findings", "details.how", "nav", "#measured .pictures"]
    tops = [page.locator(part).first.bounding_box()["y"] for part in parts]
    assert tops == sorted(tops) and tops[2] < 300, f"the chart begins in the upper third of a window: {tops}"
    assert "decision" not in page.locator("#again").inner_text()
    # What binds is said first, and how it was found only when asked for.
    assert re.search(r"\b(binds here|takes a part)", first.locator("p").first.inner_text()), first.inner_text()
    # What to do is the other sentence that is seen; the rest is folded.
    seen = answer.locator(".findings li:visible")
    assert seen.count() == 2 and "Next: " in seen.nth(1).inner_text(), seen.all_inner_texts()
    assert seen.nth(1).locator(".word").inner_text().strip() == "Next:"
    assert re.fullmatch(r"\d+ more findings?", answer.locator("details.more > summary").inner_text())
    # Two rounds give no verdict, and the title says so.
    assert page.locator("h1").inner_text().endswith("Too short to say: 2 rounds are too few for a verdict")
    # Codecs have a part each, and what the model takes is a line or told.
    words = "e => [...e.querySelectorAll('svg text')].map(t => t.textContent).join(' ')"
    said = " ".join(answer.locator("#plot-decision figure").evaluate(words).split())
    assert "Not compressed" in said and "Zstandard" in said and "without waiting" in said, said
    detail = first.locator(".detail")
    assert not detail.is_visible()
    first.locator("summary").click()
    assert detail.is_visible()
    folded = page.locator("#plot-dataset_distribution")
    assert not folded.is_visible()
    page.locator("#bench-dataset details.more > summary").first.click()
    assert folded.is_visible()


def test_inference_has_its_charts(opened, infer_report):
    page = opened(infer_report)
    for name in ["inference", "inference_distribution", "inference_timeline"]:
        plot = page.locator(f"#plot-{name}")
        plot.locator("figure").focus()
        page.keyboard.press("ArrowRight")
        assert "candle" in words_of(plot) and re.search(r"\d", words_of(plot)), name


def test_tasks_have_their_charts_and_a_table_that_sorts(opened, tasks_report):
    page = opened(tasks_report)
    for name in ["tasks", "tasks_distribution", "tasks_timeline"]:
        plot = page.locator(f"#plot-{name}")
        assert plot.locator("figure.chart > svg").is_visible() and plot.locator("g.mark").count() >= 2, name
        plot.locator("figure").focus()
        page.keyboard.press("ArrowRight")
        assert re.search(r"main|slow", words_of(plot)) and re.search(r"\d", words_of(plot)), name
    assert "slow" in page.locator("#answer").inner_text()
    table = page.locator("#bench-tasks-table")
    head = table.locator("thead th[title='column seconds']")
    head.locator("button").click()
    up = numbers(table, head)
    assert len(up) == 8 and up == sorted(up) and head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert numbers(table, head) == up[::-1] and head.get_attribute("aria-sort") == "descending"


def test_pointing_and_arrow_keys_tell_values(opened):
    page = opened()
    plot = page.locator("#plot-dataset")
    hint = words_of(plot)
    assert "arrow keys" in hint
    plot.scroll_into_view_if_needed()
    mark = plot.locator("g.mark[data-s=tiff]").first
    mark.scroll_into_view_if_needed()
    # The dot of its median: the middle of its box may be beside all that is drawn of it.
    mark.locator("circle").last.hover()
    told = words_of(plot)
    assert "tiff" in told and re.search(r"\d\s(ns|µs|ms|s)\b|/s", told), told
    assert plot.locator(".tip").inner_text() == told
    page.mouse.move(1, 1)
    assert words_of(plot) == hint and not plot.locator(".tip").is_visible()
    # By keyboard: from the first mark to the last, back, and away.
    plot.locator("figure").focus()
    page.keyboard.press("ArrowRight")
    first = words_of(plot)
    assert first != hint
    page.keyboard.press("ArrowRight")
    second = words_of(plot)
    assert second not in (first, hint)
    page.keyboard.press("ArrowLeft")
    assert words_of(plot) == first
    page.keyboard.press("End")
    assert words_of(plot) not in (first, second, hint)
    assert plot.locator("g.mark.on").count() == 1
    page.keyboard.press("Escape")
    assert words_of(plot) == hint and plot.locator("g.mark.on").count() == 0
    assert plot.locator("figure").evaluate("f => f === document.activeElement")


def test_formats_are_switched_off_and_on(opened):
    page = opened()
    plot = page.locator("#plot-dataset")
    tiff = plot.locator("g.mark[data-s=tiff]")
    box = plot.get_by_role("checkbox", name="tiff", exact=True)
    assert tiff.first.is_visible()
    box.uncheck()
    assert tiff.count() > 0 and not any(tiff.nth(i).is_visible() for i in range(tiff.count()))
    assert plot.locator("g.mark[data-s=parquet]").first.is_visible()
    # What is hidden is not read out.
    plot.locator("figure").focus()
    page.keyboard.press("End")
    assert "tiff" not in words_of(plot)
    # It stays hidden on another scale.
    radios = plot.get_by_role("radio")
    if radios.count():
        radios.last.check()
        assert not plot.locator("g.mark[data-s=tiff]").first.is_visible()
    box.check()
    assert plot.locator("g.mark[data-s=tiff]").first.is_visible()


def test_the_scale_changes(opened):
    page = opened()
    plot = page.locator("#plot-dataloader")

    def drawn():
        return " ".join(plot.locator("figure > svg text").all_text_contents())

    plot.get_by_role("radio", name="linear").check()
    assert "log scale" not in drawn()
    linear = drawn()
    plot.get_by_role("radio", name="logarithmic").check()
    assert "log scale" in drawn() and drawn() != linear
    plot.locator("figure").focus()
    page.keyboard.press("ArrowRight")
    assert plot.locator("g.mark.on").count() == 1
    plot.get_by_role("radio", name="linear").check()
    assert drawn() == linear


def test_tables_sort_and_filter(opened):
    page = opened()
    table = page.locator("#bench-dataset-table")
    rows = table.locator("tbody tr:visible")
    head = table.locator("thead th", has_text="throughput").first
    head.locator("button").click()
    down = numbers(table, head)
    assert len(down) >= 4 and down == sorted(down, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert numbers(table, head) == sorted(down) and head.get_attribute("aria-sort") == "ascending"
    assert table.locator("[aria-sort]").count() == 1
    bar = page.locator(".filters[data-for=bench-dataset-table]")
    bar.get_by_role("searchbox").fill("tiff random memory")
    assert rows.count() == 1 and "tiff" in rows.first.inner_text()
    assert bar.locator("output").inner_text().startswith("1 of")
    bar.get_by_role("searchbox").fill("")
    bar.get_by_label("format").select_option("parquet")
    assert {row.locator("th").inner_text() for row in rows.all()} == {"parquet"}


def test_a_table_of_one_row_is_no_table_of_rows(opened, report):
    alone = report.with_name("one-row.html")
    alone.write_text(re.sub(r"(?s)(<tbody>\n<tr.*?</tr>\n).*?</tbody>", r"\1</tbody>", report.read_text()))
    bar = opened(alone).locator(".filters[data-for=bench-dataset-table]")
    assert bar.locator("output").inner_text() == "1 row"
    bar.get_by_role("searchbox").fill("no such word")
    assert bar.locator("output").inner_text() == "0 of 1 row"


def test_the_theme_switches(opened):
    page = opened(color_scheme="light")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    figure = "() => getComputedStyle(document.querySelector('figure.chart svg .f-paper')).fill"
    light = page.evaluate(ground), page.evaluate(figure)
    button = page.get_by_role("button", name="Dark theme")
    button.focus()
    page.keyboard.press("Enter")
    dark = page.evaluate(ground), page.evaluate(figure)
    assert light[0] == light[1] != dark[0] == dark[1]
    page.get_by_role("button", name="Light theme").click()
    assert (page.evaluate(ground), page.evaluate(figure)) == light
    # Paper is white, whatever the screen was.
    page.get_by_role("button", name="Dark theme").click()
    page.emulate_media(media="print")
    assert (page.evaluate(ground), page.evaluate(figure)) == light


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_without_controls_and_whole(opened, reports, kind):
    # A4 on its side has 1047 px within its margins, and Chromium prints at down to half the size what is wider.
    page = opened(reports(kind), viewport={"width": 2000, "height": 1200})
    page.emulate_media(media="print")
    for what in ["nav", "#theme", ".skip", ".filters", ".tools", ".readout", "button.copy"]:
        found = page.locator(what)
        assert found.count() > 0 and not any(one.is_visible() for one in found.all()), what
    assert page.locator("table.results").first.is_visible()
    clipped = page.locator(".scroll, figure.chart, .command pre").evaluate_all(
        """all => all.filter(e => e.scrollWidth > e.clientWidth || getComputedStyle(e).maxHeight !== 'none')
            .map(e => [e.className, e.scrollWidth, e.clientWidth])"""
    )
    assert not clipped
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF-") and len(printed) > 20_000


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(opened, reports, kind, theme):
    page = opened(reports(kind), color_scheme=theme, reduced_motion="reduce", bypass_csp=True)
    # With a value on show, too.
    page.locator("#plot-dataset figure" if kind == "bench" else ".plot figure").first.focus()
    page.keyboard.press("ArrowRight")
    found = axe.Axe().run(page).response["violations"]
    told = [f"{v['id']} ({v['impact']}): {node['html'][:160]}" for v in found for node in v["nodes"][:3]]
    assert not told, "\n".join(told)


def test_a_small_screen_scrolls_inside_figures_only(opened):
    page = opened(viewport={"width": 400, "height": 800})
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 400, wide
    # A figure is wider than that: its title, which is cut, stands above it in full.
    above, figure = page.locator("#answer .narrow"), page.locator("#answer figure.chart")
    title = figure.get_attribute("aria-label").removeprefix("Figure: ")
    assert above.is_visible() and above.inner_text() == f"{title}. Scroll the figure sideways to see all of it."
    assert figure.evaluate("one => one.scrollWidth > one.clientWidth")
    assert opened().locator("#answer .narrow").is_hidden()


def test_the_picture_in_the_readme_is_of_such_a_report(opened):
    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location("report_picture", root / "scripts/report-picture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with script.Image.open(root / "docs/images/report.png") as picture:
        assert picture.text["sections"] == script.sections(opened()), "run make demo and make report-picture"


def test_without_its_script_the_page_is_whole(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("figure.chart > svg").count() >= 11
    assert page.locator("table.results").count() >= 5
    # Switches that could not work are not shown.
    for what in [".tools", ".filters", ".readout", "#theme", "button.copy"]:
        assert page.locator(what).count() > 0 and not page.locator(what).first.is_visible(), what
