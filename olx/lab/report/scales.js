"use strict";
// Scales and axes of the charts: linear, logarithmic, and logarithmic but linear near 0.

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

/** A scale of uPlot; `room` is the share of its length that stays free at both ends. */
function scaleOf({log, near}, room) {
  const there = log && near ? v => Math.asinh(v / near) : log ? Math.log : v => v;
  const back = log && near ? v => near * Math.sinh(v) : log ? Math.exp : v => v;
  const range = (_, low, high) => {
    if (low == null || high == null) return [1, 10];
    const free = room * (there(high) - there(low)) || room;
    return [back(there(low) - free), back(there(high) + free)];
  };
  return {time: false, distr: log ? (near ? 4 : 3) : 1, asinh: near, range};
}

function axisOf(label, side, {log, near}) {
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

/** 1, 2, 5, 10, ... or powers of 10 alone, as many as there is room for. */
function powers(low, high, places) {
  const room = places / Math.log10(high / low), found = [];
  const every = Math.max(1, Math.ceil(1 / room));
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    if (power % every) continue;
    for (const one of room > 3.4 ? [1, 2, 5] : [1]) found.push(Number(`${one}e${power}`));
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
