"""Every kind of page that the package writes, in a real browser (headless Chromium), opened from disk."""

import base64
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from skfairdp import FairPATEClassifier, PATEClassifier, PrivacyLedger, PublicData  # noqa: E402
from skfairdp.inspection import ParetoFrontierDisplay, SyntheticDataReport, audit  # noqa: E402
from tests._tools.catalogue import make_rows  # noqa: E402
from tests._tools.searches import make_frame, two_guarantees  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver on the PATH (Debian: apt-get install chromium chromium-driver)")
    options = Options()
    options.binary_location = BROWSER
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
        "window-size=1280,1400",
    ):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tempfile.mkdtemp(prefix='skfairdp-browser-')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    except WebDriverException as error:
        pytest.skip(f"Chromium does not start here: {error.msg}")
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, tmp_path):
    """The page of a small frontier, freshly opened in light colours."""
    return open_page(browser, make_frame(), tmp_path)


def open_page(browser, frame, folder, theme="light"):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    path = ParetoFrontierDisplay(frame).to_html(Path(folder) / "frontier.html")
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    return browser


def marks(page):
    return page.find_elements(By.CSS_SELECTOR, "svg .mark")


def rows(page):
    return [row.text for row in page.find_elements(By.CSS_SELECTOR, "tbody tr")]


def set_slider(page, field, position):
    page.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'))",
        f"panel0-{field}",
        position,
    )


def test_plot_shows_every_model_inside_its_frame_with_axes_and_legend(page):
    assert len(marks(page)) == 15 == len(rows(page))
    stage = page.find_element(By.CSS_SELECTOR, "svg").rect
    for mark in marks(page):
        box = mark.rect
        assert box["width"] > 4 and box["height"] > 4
        assert stage["x"] <= box["x"] and box["x"] + box["width"] <= stage["x"] + stage["width"]
        assert stage["y"] <= box["y"] and box["y"] + box["height"] <= stage["y"] + stage["height"]
    text = page.find_element(By.CSS_SELECTOR, "svg").text
    assert "Fairness gap" in text and "Accuracy" in text and "%" in text
    legend = page.find_element(By.CSS_SELECTOR, ".legend").text
    assert "ε protecting one record" in legend and "IDP3 on top of a fair student" in legend
    assert "ε = 5.3" in page.find_element(By.CSS_SELECTOR, ".guarantee").text
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_no_request_leaves_the_page_and_the_console_is_silent(page):
    set_slider(page, "gap", 1)
    page.find_element(By.CSS_SELECTOR, "button.copy").click()
    asked = [
        message["params"]["request"]["url"]
        for message in (json.loads(entry["message"])["message"] for entry in page.get_log("performance"))
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert asked and all(url.startswith(("file://", "data:")) for url in asked)
    assert len([url for url in asked if url.startswith("file://")]) == 1  # the page itself
    entries = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert all(name.startswith("data:") for name in entries)
    assert page.get_log("browser") == []


def test_a_request_would_be_stopped_by_the_page_itself(page):
    outcome = page.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'), () => done('stopped'))"
    )
    blocked = [entry["message"] for entry in page.get_log("browser")]
    assert outcome == "stopped" and any("Content Security Policy" in message for message in blocked)


def test_hovering_shows_epsilon_what_it_protects_and_the_parameters(page):
    tip = page.find_element(By.CSS_SELECTOR, ".tip")
    assert not tip.is_displayed()
    seen = set()
    for mark in marks(page)[-3:]:
        ActionChains(page).move_to_element(mark).perform()
        assert tip.is_displayed()
        text = tip.text
        assert "ε = " in text and "ε protects one record (replace one record)" in text
        assert "FairPATEClassifier(epsilon=" in text and "γ" in text and "Coverage" in text
        seen.add(text)
    assert len(seen) == 3
    ActionChains(page).move_to_element(page.find_element(By.CSS_SELECTOR, "h1")).perform()
    assert not tip.is_displayed()


def test_the_page_can_be_used_with_the_keyboard_alone(page):
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("class") == "skip"
    for _ in range(12):
        page.switch_to.active_element.send_keys(Keys.TAB)
        if page.switch_to.active_element.get_attribute("data-point"):
            break
    first = page.switch_to.active_element.get_attribute("aria-label")
    assert first is not None and "protecting one record" in first
    assert page.find_element(By.CSS_SELECTOR, ".tip").is_displayed()
    visited = {first}
    for key in (
        Keys.HOME,
        Keys.ARROW_RIGHT,
        Keys.ARROW_RIGHT,
        Keys.ARROW_UP,
        Keys.END,
        Keys.ARROW_LEFT,
        Keys.ARROW_DOWN,
    ):
        page.switch_to.active_element.send_keys(key)
        visited.add(page.switch_to.active_element.get_attribute("aria-label"))
    assert len(visited) >= 5
    target = page.switch_to.active_element.get_attribute("data-point")
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.switch_to.active_element.get_attribute("data-point") == target  # focus survives the redraw
    assert page.find_element(By.CSS_SELECTOR, "tbody tr.on").get_attribute("data-row") == target
    page.switch_to.active_element.send_keys(Keys.TAB)  # one stop for the whole plot
    assert page.switch_to.active_element.tag_name == "input"


def test_focus_is_visible(page):
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    page.switch_to.active_element.send_keys(Keys.TAB)
    style = page.execute_script(
        "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
    )
    assert style.startswith("solid") and not style.endswith(" 0px")


@pytest.mark.parametrize(("field", "position", "column", "limit"), [("epsilon", 0, 0, 0.5), ("gap", 1, 3, 0.009)])
def test_sliders_bound_the_models_in_plot_and_table(page, field, position, column, limit):
    set_slider(page, field, position)
    cells = [
        row.find_elements(By.TAG_NAME, "td")[column].text for row in page.find_elements(By.CSS_SELECTOR, "tbody tr")
    ]
    assert cells and all(float(cell) <= limit for cell in cells)
    assert len(cells) == len(marks(page)) < 15
    assert f"{len(cells)} of 15 models" in page.find_element(By.CSS_SELECTOR, ".filters").text
    page.find_element(By.XPATH, "//button[text()='Reset']").click()
    assert len(marks(page)) == 15


def test_filters_that_leave_nothing_say_so(page):
    set_slider(page, "epsilon", 0)
    for box in page.find_elements(By.CSS_SELECTOR, ".check input")[:2]:
        box.click()
    assert marks(page) == [] and rows(page) == ["No model satisfies the filters."]


def test_choosing_a_row_shows_code_for_it_and_marks_the_point(page):
    row = next(r for r in page.find_elements(By.CSS_SELECTOR, "tbody tr") if "on top" in r.text.split("\n")[0])
    chosen = row.get_attribute("data-row")
    row.click()
    code = page.find_element(By.CSS_SELECTOR, ".chosen pre").text
    assert "IDP3(FrozenEstimator(model)" in code and "FairPATEClassifier(epsilon=" in code
    assert page.find_element(By.CSS_SELECTOR, "svg .mark.on").get_attribute("data-point") == chosen
    button = page.find_element(By.CSS_SELECTOR, "button.copy")
    button.click()
    # The clipboard answers when it likes; the text stands for less than two seconds.
    WebDriverWait(page, 10, poll_frequency=0.05).until(lambda _: button.text in ("Copied", "Selected: press Ctrl+C"))


def test_table_sorts_by_column_both_ways(page):
    def accuracies():
        return [
            float(r.find_elements(By.TAG_NAME, "td")[4].text.split()[0])
            for r in page.find_elements(By.CSS_SELECTOR, "tbody tr")
        ]

    page.find_element(By.XPATH, "//th/button[text()='Accuracy']").click()
    assert accuracies() == sorted(accuracies())
    page.find_element(By.XPATH, "//th/button[text()='Accuracy']").click()
    assert accuracies() == sorted(accuracies(), reverse=True)
    assert len(page.find_elements(By.CSS_SELECTOR, "th[aria-sort='descending']")) == 1


def test_axes_can_be_exchanged(page):
    select = page.find_elements(By.CSS_SELECTOR, ".plotbar select")[0]
    select.send_keys("Coverage")
    assert "Coverage" in page.find_element(By.CSS_SELECTOR, "svg").text and len(marks(page)) == 15


def _luminance(color):
    parts = [float(v) / 255 for v in color[color.index("(") + 1 : color.index(")")].split(",")[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(page, selector, prop, background):
    front, back = page.execute_script(
        "return [getComputedStyle(document.querySelector(arguments[0]))[arguments[1]],"
        " getComputedStyle(document.querySelector(arguments[2])).backgroundColor]",
        selector,
        prop,
        background,
    )
    light, dark = sorted((_luminance(front), _luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_stay_readable(browser, tmp_path, theme):
    page = open_page(browser, make_frame(), tmp_path, theme)
    background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (_luminance(background) > 0.5) == (theme == "light")
    assert _contrast(page, "h1", "color", "body") > 7  # WCAG AAA for text
    assert _contrast(page, ".legend", "color", ".plot") > 4.5  # AA for text
    assert _contrast(page, "svg text", "fill", ".plot") > 4.5
    fills = {mark.value_of_css_property("fill") for mark in marks(page)}
    card = page.execute_script("return getComputedStyle(document.querySelector('.plot')).backgroundColor")
    for fill in fills:
        light, dark = sorted((_luminance(fill), _luminance(card)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 3  # AA for shapes
    page.find_element(By.ID, "theme").click()
    switched = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (_luminance(switched) > 0.5) == (theme == "dark") and len(marks(page)) == 15


def test_unlike_guarantees_never_share_axes(browser, tmp_path):
    page = open_page(browser, two_guarantees(), tmp_path)
    panels = page.find_elements(By.CSS_SELECTOR, ".panel")
    counts = [len(panel.find_elements(By.CSS_SELECTOR, "svg .mark")) for panel in panels]
    assert counts == [15, 10]
    assert "one record" in panels[0].find_element(By.CSS_SELECTOR, ".legend").text
    assert "one sensitive attribute" in panels[1].find_element(By.CSS_SELECTOR, ".legend").text


def test_narrow_screens_need_no_sideways_scrolling(browser, tmp_path):
    page = open_page(browser, make_frame(), tmp_path)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": False}
    )
    try:
        page.refresh()
        assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert len(marks(page)) == 15
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_screenshot_is_kept_where_asked(page):
    """With SKFAIRDP_SCREENSHOT=FILE the picture is kept, to be looked at."""
    picture = page.get_screenshot_as_png()
    assert picture[:4] == b"\x89PNG" and len(picture) > 20_000
    if os.environ.get("SKFAIRDP_SCREENSHOT"):
        Path(os.environ["SKFAIRDP_SCREENSHOT"]).write_bytes(picture)


# ---- every page, on a phone and a desk, in light and dark, and on paper --------------------------------------------
#: Texts that cannot be read: their colour is too near that of what is behind them (WCAG AA).
FAINT = """
const parts = c => { const n = c.match(/[\\d.]+/g).map(Number); return [...n.slice(0, 3), n.length > 3 ? n[3] : 1] };
const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3]));
const bright = c => { const l = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2] };
const behind = e => { const sheets = [];
  for (; e; e = e.parentElement) sheets.push(parts(getComputedStyle(e).backgroundColor));
  return sheets.reverse().reduce((under, sheet) => over(sheet, under), [255, 255, 255]) };
const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode.data.trim(), element = walk.currentNode.parentElement;
  if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
  if (element.closest('script, style, .skip, [aria-hidden=true], option, .pst-async-banner-revealer')) continue;
  const style = getComputedStyle(element), paper = behind(element);
  const ink = over(parts(element.closest('svg') ? style.fill : style.color), paper);
  const [low, high] = [bright(ink), bright(paper)].sort((a, b) => a - b), contrast = (high + 0.05) / (low + 0.05);
  if (contrast < 4.5)
    found.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className}: ${text.slice(0, 40)}`);
}
return found;
"""


PAGES = ("statement", "ledger", "audit", "synthetic", "frontier", "two", "amounts")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One of each kind."""
    folder, R, ledger = tmp_path_factory.mktemp("pages"), make_rows(), PrivacyLedger(3.0)
    model = FairPATEClassifier(epsilon=2.0, n_teachers=10, classes=[0, 1], ledger=ledger, random_state=0)
    plain = PATEClassifier(epsilon=2.0, n_teachers=2, classes=[0, 1], random_state=0)
    with warnings.catch_warnings(action="ignore"):  # of so few rows no use is to be expected
        model.fit(R.X, R.y, sensitive_features=R.groups, X_public=PublicData(R.X_public, R.groups_public))
        found = audit(plain, R.X, R.y, n_runs=20, fit_params={"X_public": R.X_public}, random_state=0)
    found.to_html(folder / "audit.html")
    ledger.to_html(folder / "ledger.html")
    (folder / "statement.html").write_text(model.privacy_statement().to_html(), "utf-8")
    SyntheticDataReport.from_data(
        R.X, R.X[::-1], y_real=R.y, y_synthetic=R.y[::-1], sensitive_features_real=R.groups,
        sensitive_features_synthetic=R.groups, privacy=model.privacy_,
    ).to_html(folder / "synthetic.html")  # fmt: skip
    frames = {"frontier": make_frame(), "two": two_guarantees()}
    frames["amounts"] = make_frame().rename(columns={"accuracy": "r2"})
    for name, frame in frames.items():
        ParetoFrontierDisplay(frame).to_html(folder / f"{name}.html")
    return folder


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_read_on_a_phone_and_a_desk_in_light_and_dark(browser, pages, name, width, theme):
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == 390}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    try:
        browser.get((pages / f"{name}.html").as_uri())
        assert browser.title
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.execute_script(FAINT) == []
        first = browser.execute_script(
            "const p = [...document.querySelectorAll('main p')].find(e => e.innerText.trim());"
            "const t = document.querySelector('main table, main svg');"
            "return [p.innerText, !t || !!(p.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_FOLLOWING)]"
        )
        assert len(first[0].split()) > 6 and first[1]
        assert browser.get_log("browser") == []
        _keep(browser, f"{name}-{width}-{theme}")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _keep(browser, name):
    """With SKFAIRDP_SCREENSHOTS=FOLDER the whole page is kept, to be looked at."""
    if folder := os.environ.get("SKFAIRDP_SCREENSHOTS"):
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        Path(folder, f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_black_on_white_on_paper_whatever_the_screen_is(browser, pages, name):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.get((pages / f"{name}.html").as_uri())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    try:
        found = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert _luminance(found) > 0.9
        assert browser.execute_script(FAINT) == []
        printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
        assert printed.startswith(b"%PDF") and len(printed) > 5_000
        if folder := os.environ.get("SKFAIRDP_SCREENSHOTS"):
            Path(folder, f"{name}.pdf").write_bytes(printed)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
