/** Opens the palette: Ctrl+K, or its button. The palette itself is loaded when it is opened first. */
import { lazy, Suspense, useEffect, useState } from "react";
import { t } from "../strings";

const Palette = lazy(() => import("./Palette"));

export function PaletteKey() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      const wanted =
        event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!wanted) return;
      event.preventDefault();
      // Another dialog asks something first.
      setOpen((before) => !before && document.querySelector("dialog[open]") === null);
    }
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        className="plain palette-button"
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K"
        aria-label={t.palette.open}
        title={`${t.palette.open} (${t.palette.keys})`}
        onClick={() => setOpen(true)}
      >
        <span aria-hidden="true">⌕</span>
      </button>
      {open && (
        <Suspense fallback={null}>
          <Palette onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
