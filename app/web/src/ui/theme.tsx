/** Dark or light: as the system has it, unless somebody says otherwise here. */
import { t } from "../strings";

const KEPT = "footnote-theme";

/** Show the page as it was chosen before. */
export function applyTheme(): void {
  const kept = window.localStorage.getItem(KEPT);
  if (kept !== null) document.documentElement.dataset.theme = kept;
}

/** Whether the page is dark at the moment; charts ask, since a canvas does not follow style sheets. */
export function isDark(): boolean {
  const theme = document.documentElement.dataset.theme;
  return theme === undefined ? window.matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}

export function ThemeButton() {
  function turn() {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    window.localStorage.setItem(KEPT, next);
    window.dispatchEvent(new Event("footnote-theme"));
  }
  return (
    <button type="button" className="plain" onClick={turn} aria-label={t.nav.theme} title={t.nav.theme}>
      <span aria-hidden="true">◐</span>
    </button>
  );
}
