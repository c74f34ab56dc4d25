/** Words of the pieces all screens share. */
export const ui = {
  notCopied: "Your browser does not let this page copy. Select the text and copy it yourself.",
  chart: {
    asTable: "As a table",
    total: "Total",
    wholeRange: "Whole range",
    image: (title: string) => `${title}. The same numbers follow as a table.`,
  },
  budget: {
    of: { tenant: "everybody", user: "user", key: "key", collection: "collection" } as Record<string, string>,
    period: { minute: "a minute", day: "a day", month: "a month", total: "in all" } as Record<string, string>,
    tokens: (count: string) => `${count} tokens`,
    title: (limit: string, period: string, whom: string) => `${limit} ${period}, ${whom}`,
    used: (used: string) => `${used} used`,
    held: (held: string) => `${held} held by calls that run`,
    left: (left: string) => `${left} left`,
    resets: (when: string) => `begins again ${when}`,
    never: "never begins again",
    soft: "only warns",
    full: "used up",
  },
};
