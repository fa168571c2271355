// Formulas are set by a copy of MathJax that lies beside this file. A formula that is wider than the
// page is made smaller, to 70 percent at most; a still wider one scrolls in its own line.
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
  options: {
    ignoreHtmlClass: ".*",
    processHtmlClass: "arithmatex",
    enableMenu: false,
    enableAssistiveMml: false,
  },
  svg: { fontCache: "global" },
  startup: {
    pageReady: () => MathJax.startup.defaultPageReady().then(fit),
  },
};

function fit() {
  for (const formula of document.querySelectorAll(".arithmatex > mjx-container")) {
    const size = (formula.dataset.size ??= parseFloat(formula.style.fontSize) || 100);
    formula.style.fontSize = `${size}%`;
    const room = formula.closest("p, li, td, div.arithmatex").clientWidth - 4;
    const wide = formula.firstElementChild.getBoundingClientRect().width;
    if (wide > room) formula.style.fontSize = `${size * Math.max(0.7, room / wide)}%`;
  }
}
window.addEventListener("resize", () => requestAnimationFrame(fit));
