"use strict";
// Draws every chart of the page with uPlot. Lines can be switched off, values read, parts enlarged.

const charts = [];
/** The series of uPlot for the lines: the line itself, then the edges of its band. */
function seriesOf(told) {
  const data = [told.at], series = [{}], bands = [];
  for (const line of told.lines) {
    line.colour = line.place < 0 ? "soft" : `c${line.place}`;
    line.first = series.length;
    line.on = true;
    const stroke = () => ink(line.colour);
    series.push({
      stroke, width: line.bound ? 1.5 : 2, dash: line.dash, spanGaps: true,
      points: {show: told.dots, size: 6, fill: stroke},
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
function nearest(told, plot, index, at) {
  if (!told.lines.some(line => line.first === index)) return null;
  const values = plot.data[index];
  for (let away = 0; away < values.length; away++) {
    if (values[at - away] != null) return at - away;
    if (values[at + away] != null) return at + away;
  }
  return null;
}

function showValues(told, plot, box) {
  const {left, top, idx, idxs} = plot.cursor;
  if (left < 0 || idx == null) {
    box.hidden = true;
    return;
  }
  const rows = told.lines.filter(line => line.on && idxs[line.first] != null).map(line => {
    const at = idxs[line.first], value = line.y[at];
    const error = line.band && line.band[1][at] - value;
    const where = told.dots && at !== idx ? ` at ${number(told.at[at])}` : "";
    const said = number(value) + (error ? ` ± ${Number(error.toPrecision(1))}` : "") + where;
    return {line, said, height: plot.valToPos(value, "y")};
  });
  rows.sort((a, b) => Math.abs(a.height - top) - Math.abs(b.height - top));
  const close = rows.slice(0, 12).sort((a, b) => a.height - b.height);
  const lost = told.lines.filter(line => line.on && line.lost.includes(told.at[idx]));
  box.replaceChildren(row("", told.x, number(told.at[idx])),
    ...lost.map(line => row(line.colour, line.label, "diverged")),
    ...close.map(({line, said}) => row(line.colour, line.label, said)));
  box.hidden = false;
  const at = plot.over.offsetLeft + left, wide = box.offsetWidth;
  const beside = at + 16 + wide <= box.parentElement.clientWidth ? at + 16 : at - wide - 16;
  box.style.left = `${Math.max(0, beside)}px`;
}

function row(colour, label, value) {
  const made = document.createElement("div"), key = document.createElement("i");
  key.style.background = colour ? `var(--${colour})` : "none";
  const name = document.createElement("span"), said = document.createElement("b");
  name.textContent = label;
  said.textContent = value;
  made.append(key, name, said);
  return made;
}

/** Crosses on the upper edge for what diverged; a line at 0. */
function marks(told, plot) {
  const {ctx, bbox} = plot, ratio = devicePixelRatio, size = 4 * ratio;
  ctx.save();
  ctx.lineWidth = 1.5 * ratio;
  for (const line of told.lines.filter(line => line.on)) {
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
  const told = JSON.parse(figure.querySelector("script").textContent);
  const place = figure.querySelector(".plot"), box = figure.querySelector(".values");
  const size = () => ({
    width: place.clientWidth, height: Math.max(250, Math.min(420, 0.5 * place.clientWidth)),
  });
  const {data, series, bands} = seriesOf(told);
  const plot = new uPlot({
    ...size(), series, bands, legend: {show: false}, focus: {alpha: 0.25},
    scales: {x: scaleOf(told.scales[0], told.dots ? 0.03 : 1e-9), y: scaleOf(told.scales[1], 0.05)},
    axes: [axisOf(told.x, 2, told.scales[0]), axisOf(told.y, 3, told.scales[1])],
    cursor: {
      drag: {x: true, y: true, uni: 30}, focus: {prox: 24},
      dataIdx: (plot, index, at) => (index ? nearest(told, plot, index, at) : at),
    },
    hooks: {setCursor: [plot => showValues(told, plot, box)], draw: [plot => marks(told, plot)]},
  }, data, place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
  controls(figure, told, plot);
  charts.push(plot);
}
