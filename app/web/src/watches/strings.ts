/** What the screen of watched questions says, and the button below an answer. */
import type { Watch, WatchDifference } from "../api/types";
import { countText, momentText } from "../ui/numbers";

const kinds: Record<WatchDifference["kinds"][number], string> = {
  answered: "whether it is answered",
  passage: "a passage",
  number: "a number",
  date: "a date",
  name: "a name",
  negation: "what is denied",
};

const states: Record<Watch["state"], string> = {
  waiting: "Waiting for its first answer",
  current: "Up to date",
  paused: "Paused",
  no_access: "Not asked any more: its key may not",
  over_budget: "Waiting: its budget is used up",
  failing: "Failed; it is tried again",
};

export const watches = {
  heading: "Watched questions",
  lead: "A watched question is asked again when other passages would answer it: when a document is added, replaced or deleted. You see here what changed.",
  none: "You watch no question yet. Below an answer, “Watch” has the question asked again when its documents change.",
  ask: "Ask a question",
  watch: "Watch",
  watching: "Watched",
  watchTitle: "Ask this again when its documents change, and tell what is different",
  made: "You are told when the answer changes.",
  see: "Watched questions",
  fresh: (count: number) => (count === 1 ? "1 changed" : `${countText(count)} changed`),
  new: "New",
  states,
  lookedAt: (at: string) => `looked at ${momentText(at)}`,
  dueAt: (at: string) => `again by ${momentText(at)}`,
  only: "Only in:",
  someDocuments: (count: number) => (count === 1 ? "1 document" : `${countText(count)} documents`),
  someCollections: (count: number) => (count === 1 ? "1 collection" : `${countText(count)} collections`),
  someDetails: "documents with certain details",
  answerNow: "The answer now",
  changes: "What changed",
  unchanged: "Nothing has changed since you watch it.",
  changedAt: (at: string) => `Changed ${momentText(at)}`,
  differs: (found: WatchDifference["kinds"]) => `What differs: ${found.map((kind) => kinds[kind]).join(", ")}`,
  before: "Before",
  after: "Now",
  gone: "Cited before, and not now",
  come: "Cited now, and not before",
  place: (filename: string, page: number | null) => (page === null ? filename : `${filename}, page ${countText(page)}`),
  pause: "Pause",
  resume: "Go on",
  remove: "Stop watching",
  removed: "The question is watched no more.",
};
