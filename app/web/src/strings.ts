/** Every word the page says, in one place, ready for another language. Each screen's words are in its own file beside it
 * and gathered here, but for those of `tables/`, which come with its screens. */
import { admin } from "./admin/strings";
import { ask } from "./ask/strings";
import { documents } from "./documents/strings";
import { overview } from "./overview/strings";
import { palette } from "./palette/strings";
import { ui } from "./ui/strings";
import { usage } from "./usage/strings";
import { viewer } from "./viewer/strings";
import { watches } from "./watches/strings";

export const t = {
  product: "Footnote",
  loading: "Loading…",
  nav: {
    label: "Main",
    ask: "Ask",
    documents: "Documents",
    watches: "Watched",
    usage: "Usage",
    admin: "Administration",
    signOut: "Sign out",
    who: (user: string, tenant: string) => `${user}, ${tenant}`,
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
  offeredKey: {
    signInAs: (user: string, tenant: string) => `Sign in as ${user} of ${tenant}?`,
    signIn: "Sign in with the key in this link?",
    caution: "Go on only if you expected this link: its owner can see what you upload and ask.",
    yes: "Sign in",
    no: "Use another key",
    title: "Switch to another key?",
    signedIn: (user: string, tenant: string) => `You are signed in as ${user} of ${tenant}.`,
    linkIsFor: (user: string, tenant: string) => `The link is for another key: ${user} of ${tenant}.`,
    linkIsForAnother: "The link is for another key.",
    change: "Switch",
    stay: "Stay signed in",
    refused: "The key in the link is not valid.",
  },
  invitation: {
    invites: (who: string, tenant: string) => `${who} invites you to ${tenant}`,
    signsIn: (tenant: string) => `Sign in to ${tenant}`,
    as: (name: string) => `You come in as ${name}.`,
    may: {
      admin: "You may do everything, also administer.",
      member: "You may add documents and ask.",
      reader: "You may ask.",
    },
    all: "You see all collections.",
    only: (names: string) => `You see these collections: ${names}.`,
    none: "You see no collection yet.",
    caution: "Go on only if you expected this link: its sender can see what you upload and ask.",
    join: "Join",
    signIn: "Sign in",
    not: "Not now",
    notValidTitle: "This link is not valid",
    toSignIn: "Sign in with a key",
    switchTitle: "Use the invitation?",
    signedIn: (who: string) => `You are signed in as ${who}. To use the link, you sign out first.`,
    signOut: "Sign out and go on",
    stay: "Stay signed in",
    keyTitle: (name: string) => `Welcome, ${name}`,
    keyLead:
      "This is your key. You need it to sign in again: in another browser, or when your session here has ended. Keep it in your password manager.",
    keyLabel: "Your key",
  },
  problem: {
    request: "Request",
    retry: "Try again",
    unreachable: "The server cannot be reached. Is it running, and are you connected?",
    ours: "Something went wrong on this page. Reload it, and tell us if it happens again.",
    again: (wait: string) => `Try again in ${wait}.`,
  },
  notFound: "There is no such page.",
  close: "Close",
  cancel: "Cancel",
  more: "Show more",
  copied: "Copied.",
  ask,
  documents,
  palette,
  viewer,
  usage,
  overview,
  admin,
  watches,
  ui,
};
