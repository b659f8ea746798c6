// The theme: the system's, until the reader chooses. Runs before the page is
// drawn, so that it is never drawn in the wrong colours first.
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
    const button = document.getElementById("theme");
    const label = () => {
      const other = current() === "dark" ? "light" : "dark";
      button.setAttribute("aria-label", `Use the ${other} theme`);
      button.title = `Use the ${other} theme`;
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
