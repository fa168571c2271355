"use strict";
// Draws every chart of the page with uPlot, from the record that `olx.lab.report.charts` describes.
// Lines can be switched off, values read, parts enlarged.

const charts = [], off = new Set(); // numbers of learners, and "bounds"

const isOn = line => !off.has(`${line.learner}`) && !(line.bound && off.has("bounds"));

/** The series of uPlot for the lines: the line itself, then the edges of its band. */
function seriesOf(chart) {
  const data = [chart.at], series = [{}], bands = [];
  for (const line of chart.lines) {
    line.colour = line.learner < 0 ? "soft" : `c${line.learner}`;
    line.first = series.length;
    const stroke = () => ink(line.colour);
    series.push({
      stroke, width: line.bound ? 1.5 : 2, dash: line.dash, spanGaps: true,
      points: {show: chart.dots, size: 6, fill: stroke},
    });
    data.push(line.y);
    if (line.band) {
      const [low, high] = line.band;
      const edge = {stroke: "transparent", spanGaps: true, points: {show: false}};
      bands.push({
        series: [series.length, series.length + 1],
        fill: () => stroke().replace("rgb(", "rgba(").replace(")", ", .14)"),
      });
      series.push(edge, {...edge});
      data.push(high, low);
    }
  }
  return {data, series, bands};
}

/** The number of the value of a series that is nearest to a place; null for edges of bands. */
function nearest(chart, plot, index, at) {
  if (!chart.lines.some(line => line.first === index)) return null;
  const values = plot.data[index];
  for (let away = 0; away < values.length; away++) {
    if (values[at - away] != null) return at - away;
    if (values[at + away] != null) return at + away;
  }
  return null;
}

function showValues(chart, plot, box) {
  const {left, top, idx, idxs} = plot.cursor;
  if (left < 0 || idx == null) {
    box.hidden = true;
    return;
  }
  const rows = chart.lines.filter(line => isOn(line) && idxs[line.first] != null).map(line => {
    const at = idxs[line.first], value = line.y[at];
    const error = line.band && line.band[1][at] - value;
    const where = chart.dots && at !== idx ? ` at ${number(chart.at[at])}` : "";
    const text = number(value) + (error ? ` ± ${number(Number(error.toPrecision(1)))}` : "") + where;
    return {line, text, height: plot.valToPos(value, "y")};
  });
  rows.sort((a, b) => Math.abs(a.height - top) - Math.abs(b.height - top));
  const lost = chart.lines.filter(line => isOn(line) && line.lost.includes(chart.at[idx]));
  box.replaceChildren(row("", chart.x.label, number(chart.at[idx])),
    ...lost.map(line => row(line.colour, line.label, "diverged")),
    ...rows.map(({line, text}) => row(line.colour, line.label, text)));
  box.classList.toggle("many", rows.length > 12);
  box.hidden = false;
  const at = plot.over.offsetLeft + left, wide = box.offsetWidth;
  const beside = at + 16 + wide <= box.parentElement.clientWidth ? at + 16 : at - wide - 16;
  box.style.left = `${Math.max(0, beside)}px`;
}

function row(colour, label, value) {
  const made = document.createElement("div"), key = document.createElement("i");
  key.style.background = colour ? `var(--${colour})` : "none";
  const name = document.createElement("span"), text = document.createElement("b");
  name.textContent = label;
  text.textContent = value;
  made.append(key, name, text);
  return made;
}

/** Crosses on the upper edge for what diverged; a line at 0. */
function marks(chart, plot) {
  const {ctx, bbox} = plot, ratio = devicePixelRatio, size = 4 * ratio;
  ctx.save();
  ctx.lineWidth = 1.5 * ratio;
  for (const line of chart.lines.filter(isOn)) {
    ctx.strokeStyle = ink(line.colour);
    for (const value of line.lost) {
      const x = plot.valToPos(value, "x", true), y = bbox.top;
      if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
      ctx.beginPath();
      ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
      ctx.moveTo(x - size, y + size); ctx.lineTo(x + size, y - size);
      ctx.stroke();
    }
  }
  if (plot.scales.y.min < 0 && plot.scales.y.max > 0) {
    const y = plot.valToPos(0, "y", true);
    ctx.strokeStyle = ink("soft");
    ctx.lineWidth = ratio;
    ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
  }
  ctx.restore();
}

function draw(figure) {
  const chart = JSON.parse(figure.querySelector("script").textContent);
  const place = figure.querySelector(".plot"), box = figure.querySelector(".values");
  const size = () => ({
    width: place.clientWidth, height: Math.max(250, Math.min(420, 0.5 * place.clientWidth)),
  });
  const {data, series, bands} = seriesOf(chart);
  const plot = new uPlot({
    ...size(), series, bands, legend: {show: false}, focus: {alpha: 0.25},
    scales: {x: scaleOf(chart.x, chart.dots ? 0.03 : 1e-9), y: scaleOf(chart.y, 0.05)},
    axes: [axisOf(chart.x, 2), axisOf(chart.y, 3)],
    cursor: {
      drag: {x: true, y: true, uni: 30}, focus: {prox: 24},
      dataIdx: (plot, index, at) => (index ? nearest(chart, plot, index, at) : at),
    },
    hooks: {setCursor: [plot => showValues(chart, plot, box)], draw: [plot => marks(chart, plot)]},
  }, data, place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
  plot.showLines = () => plot.batch(() => chart.lines.forEach(line => {
    const last = line.first + (line.band ? 2 : 0);
    for (let i = line.first; i <= last; i++) plot.setSeries(i, {show: isOn(line)});
  }));
  plot.showLines();
  const zoom = factor => enlarge(chart, plot, factor);
  figure.querySelector(".zoom").append(
    plain("+", "Enlarge", () => zoom(0.6)), plain("−", "Reduce", () => zoom(1 / 0.6)),
    plain("reset", "Show everything", () => plot.setData(plot.data)));
  charts.push(plot);
}

/** Draw the charts that are not folded away and not drawn yet. */
function drawShown() {
  for (const figure of document.querySelectorAll("figure.chart")) {
    if (!figure.closest("details:not([open])") && !figure.querySelector("canvas")) draw(figure);
  }
}

/** Switch lines on or off, in all charts. */
function press(buttons, on) {
  for (const each of buttons) {
    each.setAttribute("aria-pressed", on);
    off[on ? "delete" : "add"](each.dataset.learner);
  }
  charts.forEach(plot => plot.showLines());
}

for (const legend of document.querySelectorAll(".legend")) {
  legend.addEventListener("click", event => {
    const one = event.target.closest("button");
    if (one?.dataset.all) press(legend.querySelectorAll("[data-learner]"), one.dataset.all === "true");
    else if (one) press([one], one.getAttribute("aria-pressed") !== "true");
  });
}

/** Show a share of the rounds or values that are shown, around the middle; at most all of them. */
function enlarge(chart, plot, factor) {
  const wide = plot.over.clientWidth, free = (1 - factor) / 2 * wide;
  const low = Math.max(plot.posToVal(free, "x"), chart.at[0]);
  const high = Math.min(plot.posToVal(wide - free, "x"), chart.at[chart.at.length - 1]);
  if (low < high) plot.setScale("x", {min: low, max: high});
}

function plain(word, text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = word;
  made.title = text;
  made.addEventListener("click", act);
  return made;
}

/** A colour of page.css in the theme that is shown. */
function ink(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const probe = document.body.appendChild(document.createElement("i"));
probe.hidden = true;

function number(value) {
  if (value === 0 || (Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6)) {
    return value.toLocaleString("en", {maximumSignificantDigits: 4});
  }
  return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
}

/** A scale of uPlot, which ends at the top if the lines go on; `room` is the share of its length that stays free at both ends. */
function scaleOf({log, near, top}, room) {
  const there = log && near ? v => Math.asinh(v / near) : log ? Math.log : v => v;
  const back = log && near ? v => near * Math.sinh(v) : log ? Math.exp : v => v;
  const free = (low, high) => room * (there(high) - there(low)) || room;
  const range = (_, low, high) => {
    if (low == null || high == null) return [1, 10];
    if (top != null && low < top && top < high) return [back(there(low) - free(low, top)), top];
    return [back(there(low) - free(low, high)), back(there(high) + free(low, high))];
  };
  return {time: false, distr: log ? (near ? 4 : 3) : 1, asinh: near, range};
}

function axisOf({label, log, near}, side) {
  const widest = (_, values) =>
    28 + 7 * Math.max(2, ...(values || []).map(text => (text || "").length));
  const own = (plot, _, low, high) => {
    const upright = side === 3, size = upright ? plot.bbox.height : plot.bbox.width;
    const places = size / devicePixelRatio / (upright ? 24 : 50); // for labels
    const found = near ? aroundZero(low, high, near) : powers(low, high, places);
    return found.length > 2 ? found : even(low, high);
  };
  return {
    label, side, labelSize: 20, labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif", stroke: () => ink("soft"),
    grid: {stroke: () => ink("line"), width: 1}, ticks: {stroke: () => ink("line"), width: 1},
    values: (_, values) => values.map(number), size: side === 3 ? widest : 36,
    ...(log ? {splits: own, filter: (_, values) => values} : {}),
  };
}

/** 1, 2, 5, 10, ... or 1, 3, 10, ... or powers of 10 alone, as many as there is room for. */
function powers(low, high, places) {
  const room = places / Math.log10(high / low), found = [];
  const every = Math.max(1, Math.ceil(1 / room));
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    if (power % every) continue;
    for (const one of room > 3.4 ? [1, 2, 5] : room > 2.1 ? [1, 3] : [1]) found.push(Number(`${one}e${power}`));
  }
  return found.filter(value => value >= low * 0.999 && value <= high * 1.001);
}

function aroundZero(low, high, near) {
  const found = low <= 0 && high >= 0 ? [0] : [];
  for (let power = Math.ceil(Math.log10(near)); 10 ** power <= Math.max(-low, high); power++) {
    found.push(Number(`1e${power}`), -Number(`1e${power}`));
  }
  return found.filter(value => value >= low && value <= high).sort((a, b) => a - b);
}

function even(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough)), found = [];
  const step = power * [1, 2, 5, 10].find(one => one * power >= rough);
  for (let i = Math.ceil(low / step); i * step <= high; i++) {
    found.push(Number((i * step).toPrecision(8)));
  }
  return found;
}
