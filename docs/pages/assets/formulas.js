// Formulas are set by a copy of MathJax that lies beside this file.
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
  options: {
    ignoreHtmlClass: ".*",
    processHtmlClass: "arithmatex",
    enableMenu: false,
    enableAssistiveMml: false,
  },
  svg: { fontCache: "global" },
};
