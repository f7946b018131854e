"""The Chromium of this machine: tests open reports in it, and `report-picture.py` takes their picture."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root, as in a container, Chromium has no sandbox, and /dev/shm may be small or full of what others left.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def program():
    """The path that WELLREAD_BROWSER names, or that of the system's; None where there is none."""
    return os.environ.get("WELLREAD_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def launch(driver, path):
    """The browser at a path, by a driver of Playwright."""
    return driver.chromium.launch(executable_path=path, args=list(ARGUMENTS), timeout=180_000)
