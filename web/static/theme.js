// The theme: the system's, unless the reader chooses. This runs before the page
// is drawn, so that it does not flash in the wrong colours.
(() => {
  const key = "ibid.theme";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try { return localStorage.getItem(key); } catch { return null; }
  };
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const choice = stored();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;

  addEventListener("DOMContentLoaded", () => {
    root.style.setProperty("--gutter", `${innerWidth - root.offsetWidth}px`);
    const button = document.getElementById("theme");
    const label = () => {
      button.title = button.dataset[current() === "dark" ? "light" : "dark"];
      button.setAttribute("aria-label", button.title);
    };
    label();
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      try { localStorage.setItem(key, root.dataset.theme); } catch { /* private mode: for this page only */ }
      label();
    });
    dark.addEventListener("change", label);
  });
})();
