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

/** Dark where it is light, and light where it is dark; kept for the next time. */
export function turnTheme(): void {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  window.localStorage.setItem(KEPT, next);
  window.dispatchEvent(new Event("footnote-theme"));
}

export function ThemeButton() {
  return (
    <button type="button" className="plain" onClick={turnTheme} aria-label={t.nav.theme} title={t.nav.theme}>
      <span aria-hidden="true">◐</span>
    </button>
  );
}
