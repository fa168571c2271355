"use strict";
// The buttons of a chart: one per line, for the bounds, for all lines, and for the zoom.

function controls(figure, told, plot) {
  const bar = figure.querySelector(".legend"), state = {bounds: true};
  const show = () => plot.batch(() => told.lines.forEach(line => {
    const owner = told.lines.find(one => !one.bound && one.place === line.place);
    if (line.bound) line.on = owner.on && state.bounds;
    const last = line.first + (line.band ? 2 : 0);
    for (let i = line.first; i <= last; i++) plot.setSeries(i, {show: line.on});
  }));
  const own = told.lines.filter(line => !line.bound);
  const buttons = own.map(line => button(line.label, pressed => {
    line.on = pressed;
    show();
  }, swatch(line)));
  bar.append(...buttons.map(one => one.made));
  if (told.lines.some(line => line.bound)) {
    const dotted = {colour: "soft", dash: [1, 4]};
    bar.append(button("bounds", pressed => {
      state.bounds = pressed;
      show();
    }, swatch(dotted)).made);
  }
  if (own.length > 2) {
    for (const [word, on] of [["all", true], ["none", false]]) {
      bar.append(plain(word, `Show ${word === "all" ? "all lines" : "no line"}`, () => {
        buttons.forEach(one => one.press(on));
        own.forEach(line => (line.on = on));
        show();
      }));
    }
  }
  const zoom = factor => enlarge(told, plot, factor);
  figure.querySelector(".zoom").append(
    plain("+", "Enlarge", () => zoom(0.6)), plain("−", "Reduce", () => zoom(1 / 0.6)),
    plain("reset", "Show everything", () => plot.setData(plot.data)));
}

/** Show a share of the rounds or values that are shown, around the middle; at most all of them. */
function enlarge(told, plot, factor) {
  const wide = plot.over.clientWidth, free = (1 - factor) / 2 * wide;
  const low = Math.max(plot.posToVal(free, "x"), told.at[0]);
  const high = Math.min(plot.posToVal(wide - free, "x"), told.at[told.at.length - 1]);
  if (low < high) plot.setScale("x", {min: low, max: high});
}

function plain(word, said, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = word;
  made.title = said;
  made.addEventListener("click", act);
  return made;
}

/** A button that stays pressed until it is pressed again. */
function button(word, act, key) {
  const made = plain(word, `Show or hide ${word}`, () => {
    press(made.getAttribute("aria-pressed") !== "true");
    act(made.getAttribute("aria-pressed") === "true");
  });
  const press = on => made.setAttribute("aria-pressed", on);
  made.prepend(key);
  press(true);
  return {made, press};
}

/** A short piece of a line, in its colour and with its dashes. */
function swatch({colour, dash}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "0 0 26 6");
  made.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", "M0 3H26");
  line.setAttribute("stroke-dasharray", dash.join(" "));
  line.style.stroke = `var(--${colour})`;
  made.append(line);
  return made;
}
