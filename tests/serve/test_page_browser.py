"""The page in a real browser: asked, explained by keyboard, narrow, dark, with keys, and with texts that are markup."""

from __future__ import annotations

import json
import shutil
import time
from urllib.parse import urlsplit

import hopfuse as hf
import httpx
import pytest
from hopfuse.serve import new_key
from serve.served import CITIES, Letters, configured, running

pytestmark = pytest.mark.full

QUESTION = "What is far from Ankara?"
MARKUP = "<img src=x onerror='window.hit = 1'><script>window.hit = 1</script>"
NAMED = "<b onclick=x>Zed</b>"
LOAD = ("questions waiting", "searched together", "ms, average", "ms, slowest in 100")
BAD_OPTIONS = "document.querySelector('#options').value = '{'; document.querySelector('#go').click()"
#: Contrast of each text that is shown with what is behind it, the least first; WCAG 2.2 asks for 4.5 (1.4.3).
CONTRAST = """
const shown = [...document.querySelectorAll("body :not(script)")].filter((one) => one.checkVisibility());
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => c.slice(0, 3).map((v) => linear(v / 255))
  .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const color = rgb(getComputedStyle(one).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
};
const rows = [];
for (const one of shown) {
  if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  const style = getComputedStyle(one), svg = one instanceof SVGElement;
  const [a, b] = [light(rgb(svg ? style.fill : style.color)), light(behind(one))];
  rows.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.textContent.trim().slice(0, 40)]);
}
return rows.sort((a, b) => a[0] - b[0]);
"""


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser")
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


class Page:
    """The page of a server, in a browser."""

    def __init__(self, driver, url, width=1200, dark=False):
        self.driver, self.url = driver, url
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get("about:blank")
        driver.get(url)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def one(self, css):
        return self.driver.find_element("css selector", css)

    def run(self, script, *given):
        return self.driver.execute_script(script, *given)

    @property
    def focused(self):
        return self.driver.switch_to.active_element

    def press(self, *keys):
        for key in keys:
            self.focused.send_keys(key)

    def until(self, condition):
        """Wait for what the page will show, or fail with the error that it shows instead.

        What a condition looks at may be replaced meanwhile.
        """
        while not self._holds(condition):
            error = self.one("#error")
            assert not error.is_displayed(), error.text
            time.sleep(0.02)

    @staticmethod
    def _holds(condition):
        from selenium.common.exceptions import StaleElementReferenceException

        try:
            return condition()
        except StaleElementReferenceException:
            return False

    def ask(self, question):
        self.until(lambda: self.all("#recipe option"))
        field = self.one("#question")
        field.clear()
        field.send_keys(question, "\n")
        self.until(lambda: self.all("#names mark") or "no name" in self.one("#said").text)
        return self

    def open_graph(self, at=0):
        self.all(".hits .foot > button")[at].send_keys("\n")
        self.until(lambda: self.all(".why svg"))
        return self


def answer_to(url, query, **more):
    return httpx.post(f"{url}/v1/search", json={"queries": [query], **more}, timeout=60).raise_for_status().json()


def test_a_question_is_answered_as_the_api_answers(browser, url):
    page = Page(browser, url).ask(QUESTION)
    assert page.one("#about").text == "cities · 12 passages · 12 names · letters"
    hits = answer_to(url, QUESTION)["results"][0]["hits"]
    assert [one.text for one in page.all(".hits h3")] == [hit["title"] for hit in hits]
    assert [one.text for one in page.all(".hits .text")] == [hit["text"] for hit in hits]
    assert {one.text for one in page.all("mark.seed")} == {"Ankara"}
    assert "10 hits" in page.one("#said").text
    assert page.all(".leg.guided")[0].text.startswith("guided 1")
    assert {one.text for one in page.all(".meta dd")} >= {"a", "b"}
    page.open_graph()
    assert "[object" not in page.one("main").text


def test_a_question_asked_before_the_page_knows_the_indexes_is_answered(browser, url):
    page = Page(browser, url)
    page.one("#question").send_keys(QUESTION, "\n")
    page.until(lambda: page.all("#names mark"))
    assert len(page.all(".hits > li")) == 10


def test_settings_reach_the_server_and_stay_in_the_address(browser, url):
    page = Page(browser, url).ask(QUESTION)
    page.one("#recipe option[value=phase-graph]").click()
    page.one("#k").clear()
    page.one("#k").send_keys("3")
    page.one("#entities").send_keys("Lima, Bergen")
    page.one("#allow").send_keys('{"tenant": "a"}')
    page.one("#options").send_keys('{"alpha": 0.2}')
    page.one("#go").click()
    page.until(lambda: len(page.all(".hits > li")) == 3)
    query = {"text": QUESTION, "entities": ["Lima", "Bergen"], "allow": {"tenant": "a"}}
    hits = answer_to(url, query, k=3, recipe="phase-graph", options={"alpha": 0.2})["results"][0]["hits"]
    assert [one.text for one in page.all(".hits h3")] == [hit["title"] for hit in hits]
    page.until(lambda: "#" in browser.current_url)
    again = Page(browser, browser.current_url)
    again.until(lambda: len(again.all(".hits > li")) == 3)
    assert [one.text for one in again.all(".hits h3")] == [hit["title"] for hit in hits]


def test_a_graph_is_opened_read_and_closed_by_keyboard(browser, url):
    page = Page(browser, url, width=700)
    page.until(lambda: page.all("#recipe option"))
    assert page.focused.get_attribute("id") == "question"
    page.press(*QUESTION, "\n")
    page.until(lambda: page.all("#names mark"))
    while page.focused.text != "Why":
        page.press("\ue004")  # Tab
    why = page.focused
    page.press("\n")
    page.until(lambda: page.all(".why svg"))
    assert why.get_attribute("aria-expanded") == "true"
    page.press("\ue004")
    name = page.focused.accessible_name
    assert "the walk starts here" in name
    assert page.one(".caption").text == name
    nodes = {one.accessible_name.split(";")[0] for one in page.all(".why .node")}
    first = answer_to(url, QUESTION, trace=True)["results"][0]["trace"]["hits"][0]
    assert nodes == {f"{step['kind']} {step['name']}" for path in first["paths"] for step in path}
    page.press("\ue00c")  # Escape
    assert not page.one(".why").is_displayed()
    assert page.focused == why
    assert why.get_attribute("aria-expanded") == "false"
    page.press("/")
    assert page.focused.get_attribute("id") == "question"


@pytest.mark.parametrize("width", [320, 390, 820])
def test_a_narrow_page_needs_no_scrolling_sideways(browser, url, width):
    page = Page(browser, url, width=width).ask(QUESTION).open_graph()
    page.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.run("return document.documentElement.scrollWidth") <= width
    drawn = page.run("return document.querySelector('.why svg').getBBox().width")
    assert drawn <= width


@pytest.mark.parametrize("dark", [False, True])
def test_texts_can_be_read_in_light_and_dark(browser, url, dark):
    page = Page(browser, url, dark=dark).ask(QUESTION).open_graph()
    page.until(lambda: page.all("#live dd"))
    paper = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) < 200) == dark
    page.one("#allow").send_keys("{")
    page.one("#go").click()
    worst = page.run(CONTRAST)
    assert len(worst) > 40
    assert worst[0][0] >= 4.5, worst[:5]


def test_texts_are_there_before_the_explanation(browser, url):
    page = Page(browser, url)
    page.until(lambda: page.all("#recipe option"))
    held = "const own = fetch; let may; const until = new Promise((go) => { may = go; }); window.release = may;"
    waits = "how.body?.includes('trace') ? until : Promise.resolve()"
    page.run(f"{held} window.fetch = (path, how) => ({waits}).then(() => own(path, how));")
    page.one("#question").send_keys(QUESTION, "\n")
    page.until(lambda: page.all(".hits .text"))
    hits = answer_to(url, QUESTION)["results"][0]["hits"]
    assert [one.text for one in page.all(".hits .text")] == [hit["text"] for hit in hits]
    assert page.all("#names mark") == []
    page.run("release()")
    page.until(lambda: page.all("#names mark"))


def test_back_returns_to_the_question_before(browser, url):
    page = Page(browser, url).ask(QUESTION)
    first = [one.text for one in page.all(".hits h3")]
    page.one("#k").clear()
    page.one("#k").send_keys("3")
    page.ask("What is far from Lima?")
    page.until(lambda: len(page.all(".hits > li")) == 3)
    browser.back()
    page.until(lambda: [one.text for one in page.all(".hits h3")] == first)
    assert page.one("#question").get_attribute("value") == QUESTION
    assert page.one("#k").get_attribute("value") == "10"
    browser.forward()
    page.until(lambda: len(page.all(".hits > li")) == 3)
    assert page.one("#question").get_attribute("value") == "What is far from Lima?"


@pytest.mark.parametrize("width", [320, 820, 1360])
def test_what_a_search_says_stands_below_the_question(browser, url, width):
    page = Page(browser, url, width=width)
    page.until(lambda: page.all("#recipe option"))
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert page.run(top, "#welcome") - page.run(bottom, "#form") < 60
    page.one("#question").send_keys(QUESTION)
    for script, beside in (("fail({ message: 'The server did not answer.' })", "#form"), (BAD_OPTIONS, "#options")):
        page.run(script)
        while not page.one("#error").is_displayed():
            time.sleep(0.02)
        assert 0 <= page.run(top, "#error") - page.run(bottom, beside) < 60
        page.run("fail(null); document.querySelector('#options').value = ''")
    page.ask(QUESTION)
    page.until(lambda: len(page.all(".hits > li")) == 10)
    script = (
        "return [...document.querySelectorAll('.hits > li')].map((one) => getComputedStyle(one, '::before').height)"
    )
    assert len(set(page.run(script))) == 1, "the rank 10 is on one line, as the others"
    sizes = "return [...document.querySelectorAll('summary')].map((one) => one.getBoundingClientRect().height)"
    assert min(page.run(sizes)) >= 24


def test_marks_of_direction_end_with_the_name_that_has_them(browser, tmp_path):
    names, turned = ["\u202eZed", "Oslo"], "\u202eTitle"
    texts = [f"{name} lies here" for name in names]
    index = hf.Index.build(
        passages=[{"id": at, "title": f"{turned} {at}", "text": text} for at, text in enumerate(texts)],
        vectors=Letters().encode_passages(texts),
        entities=names,
        graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 2, "dst": 3}],
        encoder=Letters(),
        metric="cosine",
    )
    index.save(tmp_path / "index")
    with running(configured(str(tmp_path / "index"))) as url:
        page = Page(browser, url)
        page.until(lambda: page.all("#recipe option"))
        page.one("#entities").send_keys(",".join(names))
        page.ask("Where?").open_graph()
        page.run("for (const one of document.querySelectorAll('.why details')) one.open = true")
        shown = "return [...document.querySelectorAll(arguments[0])].map((one) => getComputedStyle(one).unicodeBidi)"
        assert set(page.run(shown, "#names mark, .why text, .why li bdi")) == {"isolate"}
        listed = "return [...document.querySelectorAll('.why li')].map((one) => [...one.childNodes]"
        plain = f"{listed}.filter((node) => node.nodeType === 3).map((node) => node.data).join(''))"
        assert not any("\u202e" in text for text in page.run(plain))


def test_no_text_becomes_markup(browser, tmp_path):
    texts = [f"{MARKUP} {NAMED} and {city}" for city in CITIES[:3]]
    passages = [
        {"id": f"{MARKUP}{at}", "title": f"{MARKUP} {at}", "text": text, "metadata": {"note": MARKUP}}
        for at, text in enumerate(texts)
    ]
    graph = [{"src": at, "dst": 3, "type": MARKUP} for at in range(3)] + [{"src": 3, "dst": 4, "type": "context"}]
    index = hf.Index.build(
        passages=passages,
        vectors=Letters().encode_passages(texts),
        entities=[NAMED, CITIES[0]],
        graph=graph,
        encoder=Letters(),
        metric="cosine",
    )
    index.save(tmp_path / "index")
    with running(configured(str(tmp_path / "index"))) as url:
        page = Page(browser, url)
        page.until(lambda: page.all("#recipe option"))
        page.one("#entities").send_keys(NAMED)
        page.one("#question").send_keys(f"{MARKUP}?", "\n")
        page.until(lambda: page.all("#names mark"))
        page.open_graph()
        assert page.all(".hits h3")[0].text.startswith(MARKUP)
        assert page.one("#names mark").text == NAMED
        assert MARKUP in [one.text for one in page.all(".why .relation")]
        assert page.all("main img, main b, main script, .hits script") == []
        page.one("#options").send_keys(json.dumps({MARKUP: 1}))
        page.one("#go").click()
        while not page.one("#error").is_displayed():
            time.sleep(0.02)
        assert MARKUP in page.one("#error").text
        assert page.run("return window.hit") is None
        for assigned in ("document.body.innerHTML = '<p>'", "document.body.insertAdjacentHTML('beforeend', '<p>')"):
            with pytest.raises(Exception, match="TrustedHTML"):
                page.run(assigned)


def test_everything_is_from_this_server_and_nothing_is_refused(browser, url):
    browser.get_log("performance")
    browser.get_log("browser")
    Page(browser, url).ask(QUESTION).open_graph()
    messages = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    sent = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
    origins = {urlsplit(one).netloc for one in sent if not one.startswith(("data:", "about:"))}
    assert origins == {urlsplit(url).netloc}
    assert [one["message"] for one in browser.get_log("browser") if one["level"] != "DEBUG"] == []


def test_a_key_is_kept_in_memory_alone(browser, path):
    key, digest = new_key()
    with running(configured(path, keys={"reader": {"sha256": digest}})) as url:
        page = Page(browser, url)
        while not page.one("#error").is_displayed():
            time.sleep(0.02)
        assert "API key" in page.one("#error").text
        assert page.focused.get_attribute("id") == "key"
        assert page.focused.get_attribute("aria-invalid") == "true"
        page.press(key, "\ue004")
        page.until(lambda: page.all("#recipe option"))
        page.ask(QUESTION)
        assert len(page.all(".hits > li")) == 10
        page.until(lambda: "right admin" in page.one("#unseen").text)
        kept = "return JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href, name])"
        assert key not in page.run(kept)
        browser.refresh()
        while not page.one("#error").is_displayed():
            time.sleep(0.02)
        assert page.one("#key").get_attribute("value") == ""


def test_refusals_name_the_field(browser, url):
    for field, given, says in (
        ("allow", "{", "Filter, JSON:"),
        ("allow", '{"nope": 1}', "nope"),
        ("options", '{"nope": 1}', "nope"),
        ("k", "51", "50"),
        ("k", "0", "0"),
    ):
        page = Page(browser, url).ask(QUESTION)
        page.one(f"#{field}").clear()
        page.one(f"#{field}").send_keys(given)
        page.one("#go").click()
        while not page.one("#error").is_displayed():
            time.sleep(0.02)
        assert says in page.one("#error").text
        assert page.focused.get_attribute("id") == field
        assert [one.get_attribute("id") for one in page.all("[aria-invalid=true]")] == [field]
        page.one(f"#{field}").clear()
        page.one("#k").clear()
        page.one("#go").click()
        page.until(lambda page=page: page.all("#names mark"))
        assert page.all("[aria-invalid=true]") == []


def test_the_load_is_shown(browser, url):
    page = Page(browser, url)
    page.until(lambda: page.all("#live dd"))

    def shown():
        cells = page.run("return [...document.querySelectorAll('#live dt, #live dd')].map((one) => one.textContent)")
        return dict(zip(cells[::2], cells[1::2], strict=True))

    page.until(lambda: set(shown()) == {"questions a second", *LOAD})
    while shown()["searched together"] == "–":
        httpx.post(f"{url}/v1/search", json={"queries": [QUESTION] * 8}, timeout=60).raise_for_status()
    assert float(shown()["questions a second"]) > 0
    assert float(shown()["searched together"]) > 1
    assert float(shown()["ms, average"]) > 0
