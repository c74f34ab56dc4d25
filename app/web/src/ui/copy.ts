/** Put a text on the clipboard; false where the browser does not let a page do that. */
export async function copy(text: string): Promise<boolean> {
  try {
    // Only there on https and on the machine itself (W3C Clipboard API: secure contexts).
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** The old way, which works over plain http too: select the text and have the browser copy what is selected. */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.className = "visually-hidden";
  // Outside of an open modal dialog nothing can be selected.
  (before?.closest("dialog") ?? document.body).append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
