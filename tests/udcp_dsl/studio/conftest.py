"""A studio in a folder of its own, and a page that speaks to it in process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra studio is not installed")
from starlette.testclient import TestClient

from udcp_dsl.studio.app import application
from udcp_dsl.studio.spec_folder import open_spec
from udcp_dsl.studio.studio import Studio

try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.remote.webelement import WebElement
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None  # type: ignore[assignment]

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
PORT, TOKEN = 8765, "secret-of-this-test"
SPEC = """# Pets: what a set of them takes.
labels { cat, dog, wolf, bear, ant, bee }
hierarchy kin { mammal { cat, canine { dog, wolf }, bear }, insect { ant, bee } }
param coherence = 2 in [0, 10]
loss plain = size
loss care = coherence * count(kin.level(1)) + 0.5 * size
"""


@dataclass
class Page:
    """What a browser's page does: it asks, changes, and waits for what follows."""

    client: TestClient
    studio: Studio
    folder: Path
    views: dict[str, Any] = field(default_factory=dict)
    version: int = 0

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"/{TOKEN}/api/{path}", json=body)

    def change(self, **what: Any) -> Any:
        return self.post("change", what)

    def until(self, holds: Callable[[dict[str, Any]], Any], seconds: float = 120.0) -> dict[str, Any]:
        """Waits until the views say so, and gives them."""
        end = time.monotonic() + seconds
        while True:
            answer = self.client.get(f"/{TOKEN}/api/views", params={"since": self.version}).json()
            self.version = answer["version"]
            self.views |= answer["views"]
            assert not self.views.get("fault"), self.views["fault"]
            try:
                if holds(self.views):
                    return self.views
            except (KeyError, TypeError):  # not there yet
                pass
            assert time.monotonic() < end, {name: str(view)[:300] for name, view in self.views.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pets.loss").write_text(SPEC, encoding="utf-8")
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    studio = Studio(*open_spec(folder / "pets.loss"))
    studio.change({"oracles": ["price", "lac"]})
    with TestClient(application(studio, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}") as client:
        yield Page(client, studio, folder)
    studio.close()


class Tab:
    """A page of a browser, as somebody at a keyboard has it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str, *, tour: bool = False) -> None:
        self.driver.get(address)
        if not tour:
            self.js("document.querySelector('[data-key=\"tour end\"]')?.click()")
        self.until(lambda: self.js("return document.getElementById('studio').dataset.ready") == "yes")

    def settle(self) -> None:
        """Wait until nothing is on its way to the studio or worked out there, so that all is of the last change."""
        self.until(lambda: self.js("return document.getElementById('studio').dataset.busy") == "no")

    def until(self, holds: Callable[[], Any], seconds: float = 120) -> Any:
        return WebDriverWait(self.driver, seconds, 0.1).until(lambda _: holds())

    def js(self, code: str, *given: Any) -> Any:
        return self.driver.execute_script(code, *given)

    def one(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        code = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        found: list[str] = self.js(code, css)
        return found

    def press(self, css: str, *keys: str) -> None:
        """Click, or press keys at, an element, which may just be replaced by its like."""

        def pressed() -> bool:
            try:
                element = self.one(css)
                element.send_keys(*keys) if keys else element.click()
            except StaleElementReferenceException:
                return False
            return True

        self.until(pressed)

    def type_at_end(self, text: str) -> None:
        self.one(".cm-content").click()
        ActionChains(self.driver).key_down(Keys.CONTROL).send_keys(Keys.END).key_up(Keys.CONTROL).perform()
        ActionChains(self.driver).send_keys(text).perform()

    def loud(self) -> list[str]:
        """What the browser's console has to complain of."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Callable[..., Tab]]:
    if webdriver is None or BROWSER is None or DRIVER is None:
        pytest.skip("no browser: install selenium, and Debian's packages chromium and chromium-driver")
    opened: list[webdriver.Chrome] = []

    def open_tab(width: int = 1400, height: int = 900, *, dark: bool = False, forced: bool = False) -> Tab:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER or ""
        for flag in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
            "--disable-component-update", "--disable-sync", "--disable-extensions", f"--window-size={width},{height}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={tmp_path / f'profile-{len(opened)}'}",
            *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        ):  # fmt: skip
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path)})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        opened.append(driver)
        # Windows are never as narrow as telephones.
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        if forced:
            colours = {"name": "forced-colors", "value": "active"}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [colours]})
        return Tab(driver)

    yield open_tab
    for driver in opened:
        driver.quit()


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """The command itself, in a process of its own: gives the address that it prints."""
    running: list[subprocess.Popen[str]] = []

    def serve(*arguments: str, cwd: Path) -> str:
        command = [
            sys.executable,
            "-m",
            "udcp_dsl.cli",
            "studio",
            *arguments,
            "--no-browser",
            "--json",
            "--port",
            "18700",
        ]
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        told = ""
        while not told.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, told
            told += line
        address: str = json.loads(told)["address"]
        return address

    yield serve
    for process in running:
        process.terminate()
        process.wait(20)
