"use strict";
// The page around the charts: its theme, tables that sort, a sign where a table goes on, hints.

const root = document.documentElement, theme = document.querySelector("#theme");

function setTheme(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  theme.value = name;
  charts.forEach(plot => plot.redraw(false));
}

function remembered(name) {
  try {
    if (name) localStorage.setItem("olx-theme", name);
    return localStorage.getItem("olx-theme") || "system";
  } catch {
    return name || "system"; // the browser keeps nothing for files
  }
}

theme.addEventListener("change", () => setTheme(remembered(theme.value)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme.value));

const UNITS = {us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, k: 1e3, M: 1e6, G: 1e9};

/** The number that a cell begins with; words come last, nothing after them. */
function valueOf(cell) {
  const text = cell.textContent.trim().replaceAll(",", "");
  const found = /^(?:< )?(-?[\d.]+(?:e[+-]?\d+)?)(?: (us|ms|s|min|h|[kMG])\b)?/.exec(text.replace("−", "-"));
  if (!found) return text === "" ? [2, 0] : [1, 0];
  return [0, Number(found[1]) * (UNITS[found[2]] || 1)];
}

function sort(head) {
  const table = head.closest("table"), column = head.cellIndex;
  const falling = head.getAttribute("aria-sort") === "ascending";
  const numbers = head.classList.contains("number");
  const compare = (a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    const words = x.textContent.localeCompare(y.textContent, "en", {numeric: true});
    if (!numbers) return words * (falling ? -1 : 1);
    const [[kind, value], [other, second]] = [valueOf(x), valueOf(y)];
    return kind - other || (value - second) * (falling ? -1 : 1);
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
}

for (const press of document.querySelectorAll("th > button")) {
  press.addEventListener("click", () => sort(press.parentElement));
}

/** Mark the sides on which a table goes on beyond its frame. */
function cue(scroller) {
  const rest = scroller.scrollWidth - scroller.clientWidth;
  scroller.parentElement.classList.toggle("more-left", scroller.scrollLeft > 4);
  scroller.parentElement.classList.toggle("more-right", scroller.scrollLeft < rest - 4);
}

for (const scroller of document.querySelectorAll(".scroll")) {
  scroller.addEventListener("scroll", () => cue(scroller), {passive: true});
  new ResizeObserver(() => cue(scroller)).observe(scroller);
  cue(scroller);
}

const hint = document.querySelector("#hint");

for (const table of document.querySelectorAll(".heat")) {
  table.addEventListener("pointerover", event => {
    const cell = event.target.closest("[data-hint]");
    hint.hidden = !cell;
    if (!cell) return;
    hint.textContent = cell.dataset.hint;
    const box = cell.getBoundingClientRect(), wide = root.clientWidth;
    hint.style.left = `${Math.max(8, Math.min(box.left, wide - hint.offsetWidth - 8)) + scrollX}px`;
    hint.style.top = `${box.bottom + scrollY + 6}px`;
  });
  table.addEventListener("pointerleave", () => (hint.hidden = true));
}

for (const copy of document.querySelectorAll(".copy button")) {
  copy.addEventListener("click", async () => {
    const text = copy.nextElementSibling;
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "copied";
    } catch { // the browser does not let a page write; the reader can copy what is selected
      getSelection().selectAllChildren(text);
      copy.textContent = "selected";
    }
  });
}

/** Open the fold that a link leads to. */
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
}

let folded = [];
addEventListener("hashchange", unfold);
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details.fold:not([open])")];
  folded.forEach(each => (each.open = true));
  drawShown();
  setTheme("light");
});
addEventListener("afterprint", () => {
  folded.forEach(each => (each.open = false));
  setTheme(remembered());
});
document.addEventListener("toggle", drawShown, true);
unfold();
drawShown();
setTheme(remembered());
