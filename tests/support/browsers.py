"""A real browser: Chromium without a window, driven by Playwright."""

import shutil
from contextlib import contextmanager

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    expect = sync_playwright = None
else:
    expect.set_options(timeout=60_000)  # a busy machine is no failure

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def program():
    """Where it is; none if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def why_not():
    """What is missing to open a page here."""
    if sync_playwright is None:
        return "playwright is not installed"
    return "" if program() else "no Chromium is installed (apt-get install chromium)"


@contextmanager
def opened():
    """A browser. Not for longer than a module: Playwright keeps an event loop of its own."""
    with sync_playwright() as playwright:
        # The sandbox does not work for root; nothing but our own pages is opened.
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened, and everything that it said and asked for."""

    def __init__(self, browser, url, *, width=1440, height=900, **options):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on(
            "console",
            lambda message: (
                self.errors.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
