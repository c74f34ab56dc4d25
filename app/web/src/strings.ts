/** Every word the page says, in one place, ready for another language. Each screen's words are in its own file beside it
 * and gathered here. */
import { admin } from "./admin/strings";
import { ask } from "./ask/strings";
import { documents } from "./documents/strings";
import { ui } from "./ui/strings";
import { usage } from "./usage/strings";
import { viewer } from "./viewer/strings";

export const t = {
  product: "Footnote",
  loading: "Loading…",
  nav: {
    label: "Main",
    ask: "Ask",
    documents: "Documents",
    usage: "Usage",
    admin: "Administration",
    signOut: "Sign out",
    theme: "Light or dark",
    api: "API",
    skip: "Skip to the content",
  },
  signIn: {
    promise: "Answers from your own documents. Every claim opens its passage, every token is on the bill.",
    key: "API key",
    where: "The server printed the first key when it was started; an administrator gives out others.",
    submit: "Sign in",
    provider: "Sign in with your organisation",
  },
  problem: {
    request: "Request",
    retry: "Try again",
    unreachable: "The server cannot be reached. Is it running, and are you connected?",
    ours: "Something went wrong on this page. Reload it, and tell us if it happens again.",
    again: (seconds: number) => `Try again in ${seconds} s.`,
  },
  notFound: "There is no such page.",
  close: "Close",
  cancel: "Cancel",
  more: "Show more",
  copied: "Copied.",
  ask,
  documents,
  viewer,
  usage,
  admin,
  ui,
};
