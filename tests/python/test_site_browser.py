"""The site of the documentation in a real browser: its front page, its pictures, its search, and its dark theme."""

import functools
import http.server
import threading

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

DOORS = ["Tutorials", "How-tos", "Reference", "Explanation"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files, without a line for each request."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address(site):
    """The site behind a server on this machine, as people read it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site[0]))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened(browser, address):
    """Opens a page; fails at the end if it complained, or asked another server for anything."""
    contexts, wrong = [], []

    def open_(path="index.html", **settings):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        # Long enough for a machine that is busy with other things.
        context.set_default_timeout(180_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if is_own(asked.url, address) else wrong.append(asked.url))
        page.goto(f"{address}/{path}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not wrong, wrong


def is_own(url, address):
    """A file of the site, or what lies in its pages."""
    return url.startswith((f"{address}/", "data:", "blob:"))


def pixels(page):
    """A screenshot as an array (Y, X, channels)."""
    import imagecodecs

    return imagecodecs.png_decode(page.screenshot())


def test_the_front_page_shows_four_doors(opened):
    page = opened()
    assert page.locator("main h1").inner_text() == "wellread"
    titles = page.locator("main h2").all_inner_texts()
    assert [title.split(":")[0] for title in titles][:4] == DOORS
    # A picture and the first of them are on the first screen, and all four are beside the text.
    picture = page.locator("main img").first
    assert picture.evaluate("async i => { await i.decode(); return i.naturalWidth }") == 960
    assert picture.bounding_box()["width"] > 600
    assert 0 < picture.bounding_box()["y"] < page.locator("main h2").first.bounding_box()["y"] < 900
    said = page.locator("nav").first.text_content()
    assert all(door in said for door in DOORS), said
    shot = pixels(page)
    assert shot.shape[:2] == (900, 1280)
    # Text is drawn, in both columns: neither is of one colour.
    assert shot[:, :280].std() > 5 and shot[:, 400:1100].std() > 5


def test_tables_of_results_show_their_last_column(opened):
    page = opened("peers.html")
    wrapper = page.locator("main .table-wrapper").first
    assert wrapper.locator("th").last.inner_text() == "ratio"
    assert wrapper.evaluate("one => one.scrollWidth <= one.clientWidth + 1")


def test_a_door_leads_to_its_page(opened):
    page = opened()
    page.locator("main").get_by_role("link", name="How it works").click()
    assert page.locator("main h1").inner_text().startswith("How it works")
    # mdBook has each once more, hidden until it is clicked.
    pictures = page.locator("main img:visible")
    assert pictures.count() == 2
    for i in range(2):
        pictures.nth(i).scroll_into_view_if_needed()
        assert pictures.nth(i).evaluate("async i => { await i.decode(); return i.naturalWidth }") == 960
        assert pictures.nth(i).get_attribute("alt").startswith("Six steps: ")


def test_pictures_and_pages_are_dark_where_the_reader_asks_for_it(opened):
    light, dark = (
        pixels(opened("how-it-works.html", color_scheme=scheme, viewport={"width": 1280, "height": 1200}))
        for scheme in ("light", "dark")
    )
    assert light[..., :3].mean() > 180 and dark[..., :3].mean() < 90


def test_the_search_finds_a_page(opened):
    page = opened()
    page.keyboard.press("s")
    page.locator("input[type=search]").press_sequentially("ome-zarr shards")
    results = page.locator("[id$=searchresults] li")
    results.first.wait_for()
    assert any("OME-Zarr" in text for text in results.all_inner_texts())
