/** What can be chosen in the palette, and which of it fits what was typed. */
export interface Choice {
  id: string;
  label: string;
  /** More words of it: where it was found. */
  detail: string | null;
  run: () => void;
}

export interface Group {
  name: string;
  choices: readonly Choice[];
}

/** The actions of which each typed word begins a word. */
export function fitting(actions: readonly Choice[], typed: string): Choice[] {
  const wanted = words(typed);
  return actions.filter(({ label }) => {
    const there = words(label);
    return wanted.every((one) => there.some((word) => word.startsWith(one)));
  });
}

/** The next choice or the one before, round the end; the first where nothing was chosen. */
export function moved(at: number, step: 1 | -1, count: number): number {
  return count === 0 ? -1 : (at + step + count) % count;
}

function words(text: string): string[] {
  return text
    .toLocaleLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}
