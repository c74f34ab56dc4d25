/** The questions that are shown, as they stand, and new ones below: none moves or goes away under a pointer. */
export function withNew<T extends { question: string }>(shown: readonly T[], found: readonly T[]): T[] {
  const known = new Set(shown.map(({ question }) => question));
  return [...shown, ...found.filter(({ question }) => !known.has(question))];
}
