import { t } from "../strings";
import { copy } from "./copy";
import { useNotices } from "./notices";
import { ui } from "./strings";

/** Puts a text on the clipboard and says that it did. */
export function CopyButton({ text, label, className }: { text: string; label: string; className?: string }) {
  const say = useNotices();
  async function act() {
    say((await copy(text)) ? t.copied : ui.notCopied);
  }
  return (
    <button type="button" className={className} onClick={() => void act()}>
      {label}
    </button>
  );
}
