"""The report of a result, as text and in a browser."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import fake_result
import numpy as np
import pyarrow as pa
import pytest

from olx.lab import config, report, store
from olx.lab.report import tables
from olx.lab.report.edges import edges
from olx.lab.report.figure import COLOURS
from olx.lab.report.scores import Score, scores, tuned, winners

BROWSER = shutil.which("chromium"), shutil.which("chromedriver")
CONFIGS = sorted(Path(__file__).parents[2].glob("configs/reproduce/*.toml"))
SECTIONS = (
    "Leaderboard",
    "Progressive loss",
    "Regret",
    "Sensitivity",
    "Pairs of hyperparameters",
    "Published numbers beside ours",
    "Theorems checked",
    "Time",
    "Environment",
)


class Page(HTMLParser):
    """Elements and words of a page; it also refuses what is not well nested."""

    VOID = ("meta", "link")

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = fake_result.make(tmp_path_factory.mktemp("lab") / "result")
    assert report.write(place) == place / "report.html"
    return place


@pytest.fixture(scope="module")
def text(folder) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


@pytest.fixture(scope="module")
def everything(folder):
    return scores(store.read(folder).configurations)


def test_every_section_is_there(text):
    assert re.findall(r"<h2>(.*?)</h2>", text) == list(SECTIONS)


def test_nothing_is_fetched(page, text):
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "img")
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:", "figures/")), (tag, value)
    assert set(re.findall(r"url\((.)", text)) <= {"#"}


def test_ids_are_unique_and_links_lead_somewhere(page, folder):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("href", "xlink:href"):
            target = attributes.get(name) or ""
            assert not target.startswith("#") or target[1:] in ids, target
            assert not target.startswith("figures/") or (folder / target).is_file(), target


def test_every_figure_has_a_name_and_its_files(page, folder):
    names = [attributes["id"] for tag, attributes in page.elements if tag == "figure"]
    labels = [a["aria-labelledby"] for tag, a in page.elements if a.get("role") == "img"]
    assert len(names) == 14  # 2 of loss, 2 of regret, 6 of one number, 4 of two
    assert labels == [f"{name}-title {name}-caption" for name in names]
    files = {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    assert {file.name for file in (folder / "figures").iterdir()} == files


def test_names_are_escaped(text):
    assert "<h3>a&lt;b</h3>" in text
    assert "<h1>Four learners &amp; two sets</h1>" in text
    assert "a<b" not in text


def test_leaders_come_first_with_their_standard_error(page, everything):
    best = winners(everything)
    means = [score.means["loss"] for (dataset, _), score in best.items() if dataset == "heart"]
    assert means == sorted(means)
    row = next(row for row in page.rows if row[:2] == ["1", "adagrad"])
    assert re.fullmatch(r"0\.29\d+ ± 0\.00\d+", row[2])
    assert row[-1] == "eta = 0.1"


def test_a_configuration_that_diverged_is_never_the_best(everything):
    lost = [one for one in everything if one.means["loss"] == float("inf")]
    assert {one.dataset for one in lost} == {"a<b"}
    assert all(one.swept["eta"] > 9 for one in lost)
    assert not any(one in lost for one in winners(everything).values())


def test_print_stands_beside_ours(page):
    rows = [row for row in page.rows if row[-1] == "Somebody 1999, table 1"]
    assert [row[:4] for row in rows] == [
        ["heart", "adagrad", "error", "0.36"],
        ["a<b", "adagrad", "error", "0.21"],
    ]
    ours = float(rows[0][4].split(" ")[0])
    assert float(rows[0][5]) == pytest.approx(ours - 0.36, abs=0.01)


def test_wealth_is_tuned_upwards_and_tests_tune_nothing(everything):
    rich = [
        one._replace(means={"wealth": i, "test_wealth": -i}) for i, one in enumerate(everything)
    ]
    mine = [one for one in rich if (one.dataset, one.learner) == ("heart", "adagrad")]
    assert tuned(rich, "heart", "adagrad", "wealth") is mine[-1]
    assert tuned(rich, "heart", "adagrad", "test_wealth") is mine[-1]
    assert tuned(rich, "heart", "adagrad", "absent") is None


def test_a_report_written_twice_is_the_same(folder, text):
    stale = folder / "figures" / "stale.svg"
    stale.touch()
    pictures = {file.name: file.read_bytes() for file in (folder / "figures").glob("loss*.svg")}
    report.write(folder)
    assert not stale.exists()
    assert (folder / "report.html").read_text(encoding="utf-8") == text
    for name, content in pictures.items():
        assert (folder / "figures" / name).read_bytes() == content


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_print_is_about_learners_and_sets_of_its_config(path):
    experiment = config.read(path)
    learners = {one.label or one.name for one in experiment.learners}
    datasets = {one.label or one.name for one in experiment.data}
    assert experiment.published
    for entry in experiment.published:
        assert entry.learner in learners
        assert set(entry.values) <= datasets
        assert entry.metric.removeprefix("test_") in experiment.metrics
        assert entry.metric.startswith("test_") == (experiment.protocol != "progressive")


@pytest.mark.parametrize("colour", COLOURS)
def test_curves_stand_out_from_white(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert 1.05 / (luminance + 0.05) >= 4.5


@pytest.fixture(scope="module")
def browser():
    if not all(BROWSER):
        pytest.skip("no browser: the Debian packages chromium and chromium-driver bring one")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER[0]
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(BROWSER[1]))
    yield driver
    driver.quit()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_every_figure(browser, folder, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((folder / "report.html").as_uri())
    assert browser.get_log("browser") == []
    seen = browser.execute_script(MEASURE)
    assert seen["page"] <= width, "the page itself scrolls sideways"
    assert len(seen["figures"]) == 14
    for name, left, right, height, letters in seen["figures"]:
        assert left >= 0, name
        assert right <= width, name
        assert right - left > 300, name
        assert height > 150, name
        assert letters >= 9, f"{name}: the smallest text is set in {letters} pixels"


MEASURE = """
const drawn = [...document.querySelectorAll("figure")].map(figure => {
  const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim());
  const visible = svg.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const size = text => svg.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize);
  const letters = Math.min(...texts.map(size));
  return [figure.id, box.left, box.right, visible ? box.height : 0, letters];
});
return {page: document.documentElement.scrollWidth, figures: drawn};
"""


def test_a_theorem_whose_conditions_a_run_breaks_is_told_apart(folder):
    table = store.read(folder).certificates
    infinite = pa.array([np.inf] * table.num_rows, pa.float64())
    changed = table.set_column(table.column_names.index("right"), "right", infinite)
    holds = lambda table: {row[4] for row in tables.certificates(table).rows}
    assert holds(table) == {"yes"}
    assert holds(changed) == {"says nothing"}


def score(loss, learner="ogd", **hyperparameters):
    """The score of a configuration, with one seed."""
    means, errors = {"loss": loss}, {"loss": np.nan}
    return Score("d", learner, 0, hyperparameters, {}, 9, 1, means, errors)


def test_a_best_value_at_the_end_of_its_grid_is_named():
    said = lambda *tried: edges(list(tried), winners(list(tried))["d", "ogd"])
    inside = [score(0.3, eta=0.1), score(0.2, eta=1.0), score(0.4, eta=10.0)]
    assert said(*inside) == []
    best = score(0.1, eta=100.0)
    line = "ogd: eta = 100 is the largest value of its grid; extend it, if a larger one is legal."
    assert said(*inside, best) == [line]
    assert said(*inside, best, score(0.1, eta=5.0)) == []  # as good inside
    assert said(score(0.1, n=2, mirror="pnorm"), score(0.2, n=3, mirror="pnorm")) == [
        "ogd: n = 2 is the smallest value of its grid; extend it, if a smaller one is legal."
    ]
    assert said(score(np.inf, eta=1.0), score(np.inf, eta=2.0)) == []
    assert line in tables.leaderboards(winners([*inside, best]), [*inside, best])[0].note


def test_equal_losses_share_a_rank():
    tried = [score(0.2, "a"), score(0.1, "b"), score(0.2, "c"), score(0.3, "e")]
    [board] = tables.leaderboards(winners(tried))
    assert [row[:2] for row in board.rows] == [["1", "b"], ["2", "a"], ["2", "c"], ["4", "e"]]


def test_the_parts_of_the_time_add_up(folder):
    board = tables.times(store.read(folder).times)
    assert [column.name for column in board.head][3:-1] == list(store.PARTS)
    for row in board.rows:
        assert float(row[2]) == pytest.approx(sum(map(float, row[3:-1])), rel=0.01)
