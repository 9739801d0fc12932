"use strict";
// Airflow frames the page. Its theme, if the reader chose one, is that of the page.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") {
  document.documentElement.style.colorScheme = theme;
  for (const rule of [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])) {
    if (rule.media?.mediaText.includes("prefers-color-scheme: dark")) rule.media.mediaText = theme === "dark" ? "screen" : "not all";
  }
}

// A framed page cannot lead the whole window elsewhere, but Airflow's own page around it can.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[target=_top]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const outer = window.parent.document.createElement("a");
  outer.href = link.href;
  outer.click();
});
