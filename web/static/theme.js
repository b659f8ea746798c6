// The theme: the system's, unless the reader chooses. This runs before the page
// is drawn, so that it does not flash in the wrong colours.
(() => {
  const key = "ibid.theme";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const storedTheme = () => {
    try { return localStorage.getItem(key); } catch { return null; }
  };
  // The button cycles through the system's theme, its opposite, and the same theme as a choice.
  const nextTheme = () => {
    const [same, other] = dark.matches ? ["dark", "light"] : ["light", "dark"];
    return { [other]: same, [same]: "system" }[root.dataset.theme] || other;
  };
  const choice = storedTheme();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;

  addEventListener("DOMContentLoaded", () => {
    root.style.setProperty("--gutter", `${innerWidth - root.offsetWidth}px`);
    const button = document.getElementById("theme");
    const setLabel = () => {
      button.title = button.dataset[nextTheme()];
      button.setAttribute("aria-label", button.title);
    };
    setLabel();
    button.hidden = false;
    button.addEventListener("click", () => {
      const chosen = nextTheme();
      if (chosen === "system") delete root.dataset.theme;
      else root.dataset.theme = chosen;
      try { localStorage.setItem(key, chosen); } catch { /* private mode: for this page only */ }
      setLabel();
    });
    dark.addEventListener("change", setLabel);
  });
})();
