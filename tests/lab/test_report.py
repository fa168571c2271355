"""The report of a result, as text and in a browser."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import fake_result
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from olx._terminal import as_line, as_lines
from olx.cli import main
from olx.lab import config, report, store
from olx.lab.report import charts, figures, heat_maps, plots, tables
from olx.lab.report.difference import Change, verdict
from olx.lab.report.figures import COLOURS
from olx.lab.report.scores import Score, edge_notes, scores, tuned_score, winners
from olx.lab.report.tables import divergence_hint, verdict_text

BROWSER = shutil.which("chromium"), shutil.which("chromedriver")
CONFIGS = sorted(Path(__file__).parents[2].glob("configs/reproduce/*.toml"))
SECTIONS = (
    "All data sets",
    "Each data set",
    "For a paper",
    "Published numbers beside ours",
    "Theorems checked",
    "Configurations that diverged",
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
    groups = re.findall(r'<h3 class="group">(.*?)</h3>', text)
    assert groups == ["Sensitivity", "Pairs of hyperparameters", "Classes", *groups[:2]]


def test_nothing_is_fetched(page, text):
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "img")
        assert tag != "script" or "src" not in attributes
        for name in ("src", "href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:", "figures/")), (tag, value)
    assert not re.findall(r"url\((?!#)", text)
    assert re.search(r"script-src &#39;sha256-[\w+/]+=&#39;;", text)
    assert len(text) < 400_000
    assert text.count('class="legend"') == 1


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
    charts = [a["aria-label"] for tag, a in page.elements if a.get("class") == "plot"]
    assert len(names) == 15  # 2 of loss, 2 of regret, 6 of one number, 4 of two, 1 of classes
    assert len(charts) == 10
    assert "the best decision in hindsight in the ball of radius 2" in charts[1]
    files = {f"{name}.{kind}" for name in names for kind in ("svg", "png", "pdf")}
    assert {file.name for file in (folder / "figures").iterdir()} == files


def test_errors_are_counted_by_class(page, folder):
    found = tables.confusions(store.read(folder).confusions)
    assert list(found) == ["heart"]
    assert list(found["heart"]) == ["adagrad", "omd, p-norm", "perceptron", "random"]
    (table,) = tables.class_error_tables(found)
    assert table.rows == [
        ["cat", "165", "0.0909", "0.1455", "0.2000", "0.2545"],
        ["dog", "120", *4 * ["0.0000"]],
    ]
    assert table.foot[0][:3] == ["all", "285", "0.0526"]
    said = [a["data-hint"] for tag, a in page.elements if "cat taken" in a.get("data-hint", "")]
    assert said == [
        "cat taken for cat: 150 rounds, 90.9%",
        "cat taken for dog: 12 rounds, 7.3%",
        "cat taken for none: 3 rounds, 1.8%",
    ]


def test_a_learner_that_was_not_counted_in_all_seeds_makes_no_share_of_mistakes():
    row = {"dataset": "d", "truth_name": "a", "predicted_name": "a", "truth": 0, "predicted": 0}
    other = {"truth_name": "b", "predicted_name": "b", "truth": 1, "predicted": 1}
    counts = [("good", 9, {}), ("good", 1, {"predicted": 1, "predicted_name": "b"})]
    counts += [("good", 10, other), ("lost", 5, {}), ("lost", 5, other)]  # in half of the seeds
    rows = [row | {"learner": name, "count": count} | more for name, count, more in counts]
    found = tables.confusions(pa.Table.from_pylist(rows))
    assert list(found["d"]) == ["good"]
    (table,) = tables.class_error_tables(found)
    assert table.foot[0] == ["all", "20", "0.0500"]


def test_names_are_escaped(text):
    assert "<b>a&lt;b</b>" in text
    assert "a\\textless{}b" in text
    assert "a\\&lt;b" in text  # in Markdown
    assert "<h1>Four learners &amp; two sets</h1>" in text
    assert "a<b" not in text.partition("<script>")[0]


def test_leaders_come_first_with_their_standard_error(page, everything):
    best = winners(everything)
    means = [score.means["loss"] for (dataset, _), score in best.items() if dataset == "heart"]
    assert means == sorted(means)
    row = next(row for row in page.rows if row[:2] == ["1", "adagrad"] and len(row) == 5)
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
    assert tuned_score(rich, "heart", "adagrad", "wealth") is mine[-1]
    assert tuned_score(rich, "heart", "adagrad", "test_wealth") is mine[-1]
    assert tuned_score(rich, "heart", "adagrad", "absent") is None


def test_a_report_written_twice_is_the_same(folder, text, monkeypatch):
    monkeypatch.setattr(figures, "METADATA", {"svg": figures.METADATA["svg"]})
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


def test_curves_stand_out_from_the_paper_and_from_each_other():
    assert len(set(COLOURS)) == len(COLOURS) == 24
    for colours, paper in zip(zip(*COLOURS, strict=True), ("#ffffff", "#14181e"), strict=True):
        assert min(contrast(colour, paper) for colour in colours) >= 4.5
        places = np.array([oklab(colour) for colour in colours])
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        assert apart[~np.eye(24, dtype=bool)].min() > 0.07  # 0.02 can just be told apart


def test_learners_beyond_the_colours_differ_in_their_dashes():
    looks = {(figures.colour(i), charts.dash(i)) for i in range(96)}
    assert len(looks) == 96


def contrast(colour: str, paper: str) -> float:
    """How a colour stands out from the paper, from 1 to 21 (WCAG 2)."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    high, low = sorted((float(linear(one) @ weights) for one in (colour, paper)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def oklab(colour: str) -> np.ndarray:
    """Lightness and two coordinates of hue; equal distances look about equal (Ottosson 2020)."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return lab @ np.cbrt(cones @ linear(colour))


def linear(colour: str) -> np.ndarray:
    shown = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def test_the_axis_of_a_hyperparameter_shows_the_whole_grid():
    order = {"fixed": 0, "random": 1}
    etas = np.geomspace(1e-4, 10, 64)
    tried = [score(eta, "fixed", eta=eta) for eta in etas]
    tried += [score(abs(eta - 0.3), "random", eta=eta, q=i) for i, eta in enumerate(etas)]
    tried = [one._replace(swept=one.hyperparameters) for one in tried]
    chart = next(charts.sensitivity_charts(tried, order))
    assert chart.heading == "eta on d"
    fixed, random = chart.lines
    np.testing.assert_array_equal(fixed.x, etas)  # a grid is drawn as it is
    assert random.x.size == 20  # a random search is merged, which leaves values out
    assert random.x[0] > etas[0]
    only = chart._replace(lines=[random])
    at = charts.as_json(only)["at"]
    assert (at[0], at[-1]) == (1e-4, 10.0)
    drawn = [one for one in tried if 2e-4 < one.swept["eta"] < 5]  # by chance
    grid = {"eta": {"loguniform": [1e-4, 10]}}
    laws = plots.laws({"learners": [{"name": "random", "grid": grid}]})
    (chart, *_) = charts.sensitivity_charts(drawn, order, laws)
    assert chart.x.shown == (1e-4, 10.0)


def test_the_comparator_is_drawn_where_its_regret_is_known(folder, everything):
    best = winners(everything)
    best = {key: best[key] for key in (("heart", "adagrad"), ("heart", "perceptron"))}
    order = {"adagrad": 0, "perceptron": 1}  # no regret is known of the Perceptron
    chart = next(charts.loss_charts(store.read(folder).curves, best, order, "the best"))
    line = chart.lines[-1]
    assert line.label == "comparator"
    assert line.x.size == line.y.size > 0
    assert line.x.size == len(charts.as_json(chart)["at"])


def test_a_grid_that_mostly_diverged_stays_a_grid():
    lost = lambda eta: np.inf if eta < 8 else 0.1 * eta
    tried = [score(lost(eta), eta=eta, q=q) for eta in (1.0, 2.0, 4.0, 8.0) for q in (1.0, 2.0)]
    tried = [one._replace(swept=one.hyperparameters) for one in tried]
    (found,) = heat_maps.pair_maps(tried)
    assert (found.columns, found.rows) == (["1", "2", "4", "8"], ["1", "2"])
    assert np.isnan(found.values).sum() == 6


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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_every_figure(browser, folder, width, theme):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get((folder / "report.html").as_uri())
    find = lambda query: browser.find_element("css selector", query)
    assert browser.execute_script("return charts.length") == 5  # of the data set that is open
    browser.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    WebDriverWait(browser, 10).until(lambda one: one.execute_script("return charts.length") == 10)
    seen = browser.execute_script(MEASURE)
    assert seen["page"] <= width, "the page itself scrolls sideways"
    assert seen["cues"] > 5 if width == 390 else seen["cues"] == 0
    assert len(seen["charts"]) == 10
    for name, left, right, height, drawn in seen["charts"]:
        assert 0 <= left < right - 300 < right <= width, name
        assert height >= 250, name
        assert drawn > 20, f"{name}: nothing is drawn"  # colours of its pixels
    paper = lambda: find("body").value_of_css_property("background-color")
    dark, light = "rgba(20, 24, 30, 1)", "rgba(255, 255, 255, 1)"
    assert paper() == (dark if theme == "dark" else light)

    point = lambda query: (
        ActionChains(browser).scroll_to_element(find(query)).move_to_element(find(query))
    )
    point("#loss-0 .u-over").perform()
    values = find("#loss-0 .values").text
    assert re.search(r"round\n\d+\n", values)
    assert re.search(r"adagrad\n0\.\d+ ± 0\.0\d+", values)
    assert find("#loss-0 .values").rect["x"] + find("#loss-0 .values").rect["width"] <= width
    first = "return charts.map(plot => plot.series[1].show)"  # the line of the winner, adagrad
    assert all(browser.execute_script(first))
    browser.execute_script("document.querySelector('[data-learner=\"0\"]').click()")
    point("#loss-0 .u-over").perform()
    assert "adagrad" not in find("#loss-0 .values").text
    assert sum(browser.execute_script(first)) == 4  # in the charts without adagrad
    span = "const {min, max} = charts[0].scales.x; return max / min"
    whole = browser.execute_script(span)
    find("#loss-0 .zoom button").click()
    assert browser.execute_script(span) < 0.5 * whole
    find("#loss-0 .zoom button:last-child").click()
    assert browser.execute_script(span) == pytest.approx(whole)

    browser.execute_script("location.hash = 'data-1'")
    point("#pair-0 td.best").perform()
    assert "mean loss 0.3" in find("#hint").text
    ranks = "#data-0 .boards > div:first-child tbody tr td:first-child"
    browser.execute_script("document.querySelector('#data-0 th:nth-child(2) button').click()")
    assert [cell.text for cell in browser.find_elements("css selector", ranks)][:4] != list("1234")
    browser.execute_script(CHOOSE, "dark" if theme == "light" else "light")
    assert paper() == (light if theme == "dark" else dark)
    browser.execute_script(CHOOSE, "system")
    assert browser.execute_script(WIDTH) <= width, "a hint reaches beyond the page"
    assert browser.get_log("browser") == []


WIDTH = "return document.documentElement.scrollWidth"
MEASURE = """
const drawn = [...document.querySelectorAll("figure.chart")].map(figure => {
  const canvas = figure.querySelector("canvas"), box = canvas.getBoundingClientRect();
  const pixels = new Uint32Array(
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return [figure.id, box.left, box.right, box.height, new Set(pixels).size];
});
const page = document.documentElement.scrollWidth;
return {page, charts: drawn, cues: document.querySelectorAll(".more-right").length};
"""
CHOOSE = """
theme.value = arguments[0];
theme.dispatchEvent(new Event("change"));
"""


def test_a_theorem_has_one_verdict_per_run(folder):
    table = store.read(folder).certificates
    infinite = pa.array([np.inf] * table.num_rows, pa.float64())
    changed = table.set_column(table.column_names.index("right"), "right", infinite)
    rows = lambda table: {tuple(row[4:6]) for row in tables.theorem_table(table).rows}
    assert ("holds in all 27 runs", "25.3") in rows(table)
    sides = tables.theorem_table(table).rows[0][6:8]
    assert sides == ["94.87", "189.7"]  # the published bound beside the computed one
    said_of_all = "conditions not met in all 27 runs: the right side is infinite"
    assert (said_of_all, "") in rows(changed)
    assert tables.verdict_counts(changed) == {"conditions not met": table.num_rows}
    good, *_ = table.to_pylist()
    broken = good | {"right": np.inf, "broken": "from round 5 on: rows must be short"}
    failed = good | {"holds": False, "slack": -0.5, "holds_in_double": False}
    assert verdict_text([good]) == "holds"
    assert verdict_text([broken]) == "conditions not met from round 5 on: rows must be short"
    assert verdict_text([failed | {"broken": "from round 9 on: it rains"}]) == "fails"
    lost = failed | {"broken": "from round 9 on: the run diverged", "left": np.nan}
    assert verdict_text([lost]) == "diverged from round 9 on"
    assert tables.theorem_table(pa.Table.from_pylist([lost])).rows[0][5:] == [""] * 6
    assert verdict_text([failed | {"holds_in_double": True}, good]) == (
        "fails in 1 of 2 runs by rounding alone: in double precision it holds; holds in 1 of 2 runs"
    )


def score(loss, learner="ogd", **hyperparameters):
    """The score of a configuration, with one seed."""
    means, errors = {"loss": loss}, {"loss": np.nan}
    return Score("d", learner, 0, hyperparameters, {}, 9, 1, means, errors)


def test_a_best_value_at_the_end_of_its_grid_is_named():
    said = lambda *tried: edge_notes(list(tried), winners(list(tried))["d", "ogd"])
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


def test_the_time_adds_up(folder):
    table = store.read(folder).times
    found = tables.time_table(table, outside=2.5)
    seconds = lambda cell: float(cell.split()[0]) * {"ms": 1e-3, "s": 1.0}[cell.split()[1]]
    numbers = [[seconds(cell) for cell in row[2:-1]] for row in (*found.rows, found.foot[0])]
    assert all(first == pytest.approx(sum(rest)) for first, *rest in numbers)
    jobs, outside, run = (seconds(row[2]) for row in found.foot)
    assert jobs == pytest.approx(sum(table["seconds"].to_pylist()))
    assert (outside, run) == (2.5, pytest.approx(jobs + outside))


def test_it_says_why_a_configuration_diverged(folder, everything):
    table = tables.divergence_table(everything, store.read(folder).curves)
    rows = {row[1]: row for row in table.rows}
    assert {row[0] for row in table.rows} == {"a<b"}
    assert rows["adagrad"][2:4] == ["1 of 9", "eta = 10"]
    assert rows["adagrad"][4:6] == ["between rounds 101 and 133", "0.4"]
    assert rows["adagrad"][6] == "eta is too large: all with eta ≥ 10, none below"
    mine = [one for one in everything if (one.dataset, one.learner) == ("a<b", "omd, p-norm")]
    some = [one for one in mine if one.swept["q"] < 1.5 or one.swept["eta"] < 9]
    assert divergence_hint(some) == "eta is too large: all with eta ≥ 10, none below"
    lost = lambda one: one._replace(means={"loss": np.inf})
    assert divergence_hint([lost(one) for one in mine]) == "every configuration"
    kept = [one for one in mine if one.swept["eta"] < 9]
    odd = [lost(kept[0]), *kept[1:]]
    assert divergence_hint(odd) == "only some with eta ≤ 0.001"


@pytest.fixture(scope="module")
def later(folder, tmp_path_factory) -> Path:
    """The result again: adagrad got worse, the Perceptron diverges, "random" is gone."""
    place = tmp_path_factory.mktemp("lab") / "later"
    shutil.copytree(folder, place, ignore=shutil.ignore_patterns("figures", "report.html"))
    table = pq.read_table(place / "configurations.parquet")
    rows = [row for row in table.to_pylist() if row["learner"] != "random"]
    for row in rows:
        row["loss"] += 0.01 * (1 + row["seed"]) * (row["learner"] == "adagrad")
        row["diverged"] |= row["learner"] == "perceptron"
    pq.write_table(pa.Table.from_pylist(rows, table.schema), place / "configurations.parquet")
    changed = (place / "config.toml").read_text().replace("radius = 2.0", "radius = 3.0")
    (place / "config.toml").write_text(changed)
    for each, digest in ((folder, "1"), (place, "2")):
        data = {"heart": {"rows": 9, "sha256": "0"}, "a<b": {"rows": 9, "sha256": digest}}
        (each / "data.json").write_text(json.dumps(data))
    return place


def test_two_results_are_compared(folder, later, capsys):
    assert main(["diff", str(folder), str(later)]) == 0
    said = capsys.readouterr().out
    assert said.endswith(f"The page is in {later / 'diff-result.html'}.\n")
    rows = [re.split(r"  +", line) for line in said.splitlines()]
    learners = {tuple(row[:2]): row for row in rows if row[0] in ("heart", "a<b")}
    # by seed the change is 0.01, 0.02, 0.03: a standard error of 0.01 / sqrt(3)
    assert learners["heart", "adagrad"][4:7] == ["+0.02", "+3.5", "worse"]
    assert float(learners["a<b", "adagrad"][5]) > 2  # other data: the means are compared
    assert learners["heart", "omd, p-norm"][4:6] == ["+0", "the same"]
    assert learners["heart", "perceptron"][4] == "diverges now"
    assert learners["heart", "random"][3] == "only in one result"
    assert "the data differ: a<b." in " ".join(said.split())  # notes are wrapped
    assert ["radius", "2.0", "3.0"] in rows
    assert ["a<b.sha256", "1", "2"] in rows


def test_verdicts_on_changes():
    found = [verdict(Change(*pair)) for pair in ((-1, 0.4), (1, 0.6), (1, np.nan), (-np.inf, 0))]
    assert found[:2] == ["better", "within the spread"]
    assert found[2:] == ["worse; one seed says nothing about the spread", "diverges no longer"]
    assert verdict(Change(np.nan, np.nan)) == "both diverged"


def test_a_browser_shows_the_comparison(browser, later):
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((later / "diff-result.html").as_uri())
    seen = browser.execute_script(MEASURE)
    assert seen["page"] <= 390
    assert [drawn > 20 for *_, drawn in seen["charts"]] == [True, True]
    assert browser.get_log("browser") == []


def test_a_loss_far_above_the_baseline_leaves_the_axis_and_counts_as_diverged(folder):
    table = store.read(folder).configurations
    rows = [row | {"learner": "baseline: mean"} for row in table.to_pylist() if row["seed"] == 0]
    rows = [row | {"configuration": 0} for row in rows[:1]]  # its loss is about 0.7
    more = pa.Table.from_pylist([*table.to_pylist(), *rows], table.schema)
    (base,) = [one for one in scores(more) if one.learner == "baseline: mean"]
    assert base.ceiling == 10 * base.means["loss"]
    far, near = score(7.1, "far"), score(6.9, "near")
    far, near = (one._replace(ceiling=7.0, swept={"eta": 1.0}) for one in (far, near))
    assert (far.diverged, near.diverged) == (True, False)
    curves = [
        {"dataset": "d", "learner": name, "configuration": 0, "seed": 0, "round": t, "regret": None}
        | {"total": loss * t, "bound": None}
        for name, loss in (("far", 7.1), ("near", 6.9))
        for t in (10, 20)
    ]
    curves = pa.Table.from_pylist(curves, store.SCHEMAS["curves"])
    best = {("d", "near"): near, ("d", "far"): far}
    (chart,) = charts.loss_charts(curves, best, {"near": 0, "far": 1}, "")
    assert chart.y.top == 7.0
    assert "Outside, as diverged: far (7.1), since the mean loss is not finite or" in chart.caption
    tried = [near, near._replace(swept={"eta": 2.0}), far._replace(learner="near")]
    tried[2] = tried[2]._replace(swept={"eta": 3.0})
    (chart,) = charts.sensitivity_charts(tried, {"near": 0})
    assert chart.lines[0].lost == (3.0,)


def test_without_a_scale_nothing_is_far(everything):
    ceilings = {one.dataset: one.ceiling for one in everything}
    level = np.median([one.means["loss"] for one in winners(everything).values()][:4])
    assert ceilings["heart"] == pytest.approx(10 * level)
    table = {"dataset": "d", "configuration": 0, "seed": 0, "hyperparameters": "{}", "rounds": 9}
    losses = {"a": -0.1, "b": 0.001, "c": 0.5}
    rows = [
        table | {"learner": name, "loss": loss, "total": 9 * loss, "diverged": False}
        for name, loss in losses.items()
    ]
    schema = store.SCHEMAS["configurations"]
    assert not any(one.diverged for one in scores(pa.Table.from_pylist(rows, schema)))


HOSTILE = {  # what a label, a data set and a class may be called
    "adagrad": "$x^$ \x1b[31mred\x1b]0;title\x07",
    "omd, p-norm": "a\nforged  0.0001",
    "perceptron": "_left out",
    "heart": "\x9b2J\u202edata $",
    "cat": "$\\frac$\x1b[2J",
    "dog": "<script>alert(1)</script>",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The result with other names."""
    place = fake_result.make(tmp_path_factory.mktemp("hostile") / "result")
    for path in place.glob("*.parquet"):
        table = pq.read_table(path)
        for i, name in enumerate(table.column_names):
            if pa.types.is_string(table.schema.field(name).type):
                column = table.column(name)
                for plain, odd in HOSTILE.items():
                    column = pc.if_else(pc.equal(column, plain), odd, column)
                table = table.set_column(i, table.schema.field(name), column)
        pq.write_table(table, path)
    return place


def test_labels_reach_a_terminal_as_text(hostile, capsys):
    assert main(["show", str(hostile)]) == 0
    shown = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert r"$x^$ \x1b[31mred\x1b]0;title\x07" in shown
    assert not any(line.startswith("forged") for line in shown.splitlines())
    assert main(["show", "no\x1b[31m\x07"]) == 2
    assert r"no\x1b[31m\x07" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["\x1b[31m"])
    assert "\x1b" not in capsys.readouterr().err


def test_labels_are_drawn_as_text(hostile, tmp_path):
    result = store.read(hostile)
    everything = scores(result.configurations)
    order = report.page.learner_numbers(everything)
    chart = next(charts.loss_charts(result.curves, winners(everything), order, "none"))
    figures.draw(chart, tmp_path)
    drawn = (tmp_path / "loss-0.svg").read_text()
    assert "$x^$ \\x1b[31mred" in drawn
    assert "_left out" in drawn
    assert "\x1b" not in drawn
    figures.draw(next(heat_maps.confusion_maps(tables.confusions(result.confusions))), tmp_path)
    assert "$\\frac$\\x1b[2J" in (tmp_path / "confusion-0.svg").read_text()


def test_ranks_are_drawn_with_hostile_names(hostile, tmp_path, monkeypatch):
    """Four learners on three data sets are just enough for a critical difference."""
    place = tmp_path / "result"
    shutil.copytree(hostile, place)
    names = {"a<b": "<script>alert(1)</script>", HOSTILE["heart"]: "heart"}
    for path in place.glob("*.parquet"):
        rows = pq.read_table(path)
        column = rows["dataset"].to_pylist()
        again = [rows.set_column(0, "dataset", pa.array([names[one] for one in column]))]
        again = [rows, *(part.filter(pc.equal(part["dataset"], "heart")) for part in again)]
        pq.write_table(pa.concat_tables(again), path)
    monkeypatch.setattr(figures, "METADATA", {"svg": figures.METADATA["svg"]})
    write = figures.draw
    only_ranks = lambda chart, place: chart.name == "ranks" and write(chart, place)
    monkeypatch.setattr(figures, "draw", only_ranks)
    text = report.write(place).read_text()
    page = Page(text)
    shown = [attributes for tag, attributes in page.elements if attributes.get("class") == "ranks"]
    assert "critical difference (CD) of 2.71" in shown[0]["aria-label"]
    assert "only differences of more than 2.7 of 3 ranks" in shown[0]["aria-label"]
    assert "$x^$ \\x1b[31mred" in (place / "figures" / "ranks.svg").read_text()
    assert "3 pairs: too few" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_a_line_shows_what_cannot_be_seen():
    assert as_line("a\tb\r\x00\x7f\x85\u2028\ud800\u200b") == (
        r"a\tb\r\x00\x7f\x85\u2028\ud800\u200b"
    )
    plain = "naïve 東京 \u0645\u06cc\u200c\u062e 👩\u200d🔬\xa0ok"
    assert as_lines(f"{plain}\n{plain}") == f"{plain}\n{plain}"
