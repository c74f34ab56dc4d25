/** What is being added, as a state and what can happen to it; who does the sending is in uploads.ts. */
import type { Archive, Document } from "../api/types";
import { isFinal, type Refusal, waitSeconds } from "./refusals";

/** How many files are sent at a time: browsers open six connections to a server, and the page needs some itself. */
export const AT_ONCE = 3;

export type Choice = "version" | "both" | "skip";

export type Phase =
  | { at: "waiting" }
  | { at: "checking" }
  /** A document of the same name was there before; a person says what becomes of it. */
  | { at: "asking"; existing: string }
  | { at: "sending"; loaded: number }
  | { at: "working"; document: Document }
  | { at: "done"; how: "ready" | "duplicate" | "skipped" | "gone"; document: Document | null }
  | { at: "unpacked"; documents: number }
  /** `reading`: it arrived as `document`, which the server could not read. */
  | { at: "failed"; words: string; code: string; document: Document | null; retry: boolean };

export interface Upload {
  id: number;
  /** Names the attempt to the server, so that one sent twice is done once. */
  key: string;
  name: string;
  /** Where it lay in the folder that was added. */
  path: string;
  size: number;
  collectionId: string | null;
  /** The document it becomes a new version of. */
  replaces: string | null;
  password: string | null;
  /** Nobody has to be asked about its name any more. */
  checked: boolean;
  tries: number;
  phase: Phase;
  /** Which of the additions to this list it came with, from 0. */
  addition: number;
}

export interface Queue {
  uploads: readonly Upload[];
  /** Nothing is sent before this moment (milliseconds), for the reason the server gave. */
  held: { until: number; because: string } | null;
  /** Said once for all that have the name of something that was there. */
  choice: Choice | null;
}

export const EMPTY: Queue = { uploads: [], held: null, choice: null };

export type NewUpload = Pick<Upload, "id" | "key" | "name" | "path" | "size" | "collectionId" | "replaces">;

export type QueueEvent =
  | { is: "added"; uploads: readonly NewUpload[] }
  /** Documents that were made without sending a file. */
  | { is: "made"; uploads: readonly { upload: NewUpload; document: Document }[] }
  | { is: "begun"; id: number }
  | { is: "found"; id: number; existing: string }
  | { is: "cleared"; id: number }
  | { is: "chosen"; id: number; choice: Choice; forAll: boolean }
  | { is: "sent"; id: number; loaded: number }
  | { is: "accepted"; id: number; document: Document }
  | { is: "unpacked"; id: number; archive: Archive; ids: readonly number[] }
  | { is: "refused"; id: number; refusal: Refusal; now: number }
  | { is: "released" }
  | { is: "changed"; document: Document }
  | { is: "gone"; document: string }
  | { is: "retried"; id: number; key: string; password: string | null }
  | { is: "unretried"; id: number; words: string }
  | { is: "removed"; id: number }
  | { is: "cleaned" }
  | { is: "cancelled" };

/** The queue after an event. Events about what is not there any more change nothing: answers come late. */
export function reduce(queue: Queue, event: QueueEvent): Queue {
  switch (event.is) {
    case "added":
      return {
        ...queue,
        choice: isIdle(queue) ? null : queue.choice,
        uploads: [...queue.uploads, ...event.uploads.map((upload) => fresh(upload, additions(queue)))],
      };
    case "made": {
      const addition = additions(queue);
      const made = event.uploads.map(({ upload, document }) => ({
        ...fresh(upload, addition),
        checked: true,
        phase: standing(document),
      }));
      return { ...queue, uploads: [...queue.uploads, ...made] };
    }
    case "begun":
      return at(queue, event.id, (upload) =>
        upload.phase.at === "waiting"
          ? { ...upload, phase: upload.checked ? { at: "sending", loaded: 0 } : { at: "checking" } }
          : upload,
      );
    case "found":
      return at(queue, event.id, (upload) => {
        if (upload.phase.at !== "checking") return upload;
        const asked: Upload = { ...upload, phase: { at: "asking", existing: event.existing } };
        return queue.choice === null ? asked : chosen(asked, queue.choice);
      });
    case "cleared":
      return at(queue, event.id, (upload) =>
        upload.phase.at === "checking" ? { ...upload, checked: true, phase: { at: "sending", loaded: 0 } } : upload,
      );
    case "chosen": {
      const { id, choice, forAll } = event;
      const uploads = queue.uploads.map((upload) => (forAll || upload.id === id ? chosen(upload, choice) : upload));
      return { ...queue, uploads, choice: forAll ? choice : queue.choice };
    }
    case "sent":
      return at(queue, event.id, (upload) =>
        upload.phase.at === "sending" ? { ...upload, phase: { at: "sending", loaded: event.loaded } } : upload,
      );
    case "accepted":
      return at(queue, event.id, (upload) => ({ ...upload, password: null, phase: standing(event.document) }));
    case "unpacked":
      return unpacked(queue, event.id, event.archive, event.ids);
    case "refused":
      return refused(queue, event.id, event.refusal, event.now);
    case "released":
      return { ...queue, held: null };
    case "changed":
      return ofDocument(queue, event.document.id, (upload, before) => ({
        ...upload,
        // Only the answer to the upload says that it was here already.
        phase: standing({ ...event.document, duplicate_of: before.duplicate_of ?? null }),
      }));
    case "gone":
      return ofDocument(queue, event.document, (upload) => ({
        ...upload,
        phase: { at: "done", how: "gone", document: null },
      }));
    case "retried":
      return at(queue, event.id, (upload) =>
        upload.phase.at === "failed"
          ? { ...upload, key: event.key, password: event.password, tries: 0, phase: { at: "waiting" } }
          : upload,
      );
    case "unretried":
      return at(queue, event.id, (upload) =>
        upload.phase.at === "failed" ? { ...upload, phase: { ...upload.phase, words: event.words } } : upload,
      );
    case "removed":
      return without(queue, (upload) => upload.id === event.id);
    case "cleaned":
      // What failed stays in sight until all the rest is done.
      return isIdle(queue)
        ? EMPTY
        : without(queue, (upload) => upload.phase.at === "done" || upload.phase.at === "unpacked");
    case "cancelled":
      return without(queue, (upload) => isUnsent(upload));
  }
}

/** Which uploads may begin now. */
export function toStart(queue: Queue): readonly Upload[] {
  if (queue.held !== null) return [];
  const active = queue.uploads.filter(({ phase }) => phase.at === "checking" || phase.at === "sending").length;
  return queue.uploads.filter(({ phase }) => phase.at === "waiting").slice(0, Math.max(0, AT_ONCE - active));
}

/** The documents the server still works on, in the order they were sent, which is the order it takes them in. */
export function inWork(queue: Queue): readonly string[] {
  return queue.uploads.flatMap(({ phase }) => (phase.at === "working" ? [phase.document.id] : []));
}

/** Whether nothing happens unless a person does something. */
export function isIdle(queue: Queue): boolean {
  return queue.uploads.every(({ phase }) => phase.at === "done" || phase.at === "failed" || phase.at === "unpacked");
}

/** Whether it would be lost if the page were closed. */
export function isUnsent({ phase }: Upload): boolean {
  return phase.at === "waiting" || phase.at === "checking" || phase.at === "asking" || phase.at === "sending";
}

export interface Summary {
  all: number;
  done: number;
  failed: number;
  asking: number;
  unsent: number;
}

export function summary(queue: Queue): Summary {
  const among = (...phases: Phase["at"][]) => queue.uploads.filter(({ phase }) => phases.includes(phase.at)).length;
  return {
    all: queue.uploads.length,
    done: among("done", "unpacked"),
    failed: among("failed"),
    asking: among("asking"),
    unsent: queue.uploads.filter(isUnsent).length,
  };
}

/** The uploads that are shown, those of the newest addition on top. When there are more than `most`: what needs somebody
 * first, then what moves. */
export function shown(queue: Queue, most: number): readonly Upload[] {
  const newest = newestFirst(queue.uploads);
  if (newest.length <= most) return newest;
  const rank: Record<Phase["at"], number> = {
    asking: 0,
    failed: 1,
    sending: 2,
    checking: 2,
    working: 3,
    waiting: 4,
    unpacked: 5,
    done: 6,
  };
  return newest.toSorted((one, other) => rank[one.phase.at] - rank[other.phase.at]).slice(0, most);
}

/** Files that were added together keep their order. */
function newestFirst(uploads: readonly Upload[]): readonly Upload[] {
  return uploads.toSorted((one, other) => other.addition - one.addition);
}

/** The documents of this list that are ready, the newest first. */
export function readyDocuments(queue: Queue): readonly Document[] {
  return newestFirst(queue.uploads).flatMap(({ phase }) =>
    phase.at === "done" && phase.how !== "gone" && phase.document?.status === "indexed" ? [phase.document] : [],
  );
}

function fresh(upload: NewUpload, addition: number): Upload {
  return { ...upload, password: null, checked: upload.replaces !== null, tries: 0, phase: { at: "waiting" }, addition };
}

/** How many additions made this list. */
function additions(queue: Queue): number {
  return queue.uploads.reduce((most, { addition }) => Math.max(most, addition + 1), 0);
}

function standing(document: Document): Phase {
  if (document.status === "failed") {
    const { code, detail } = document.error ?? { code: "", detail: "" };
    return { at: "failed", words: detail, code, document, retry: true };
  }
  if (document.status !== "indexed") return { at: "working", document };
  return { at: "done", how: (document.duplicate_of ?? null) === null ? "ready" : "duplicate", document };
}

function chosen(upload: Upload, choice: Choice): Upload {
  if (upload.phase.at !== "asking") return upload;
  if (choice === "skip") return { ...upload, phase: { at: "done", how: "skipped", document: null } };
  const replaces = choice === "version" ? upload.phase.existing : upload.replaces;
  return { ...upload, replaces, checked: true, phase: { at: "waiting" } };
}

/** An archive's row, followed by one for each document in it and one for each file left out. */
function unpacked(queue: Queue, id: number, archive: Archive, ids: readonly number[]): Queue {
  const uploads = queue.uploads.flatMap((upload): Upload[] => {
    if (upload.id !== id) return [upload];
    const member = (place: number, path: string, size: number, phase: Phase): Upload => ({
      ...upload,
      id: ids[place] ?? -1,
      name: path.split("/").at(-1) ?? path,
      path: `${upload.path}/${path}`,
      size,
      password: null,
      phase,
    });
    return [
      { ...upload, password: null, phase: { at: "unpacked", documents: archive.data.length } },
      ...archive.data.map((document, place) =>
        member(place, document.archive_path, document.bytes, standing(document)),
      ),
      ...archive.skipped.map(({ name, code, detail }, place) =>
        member(archive.data.length + place, name, 0, {
          at: "failed",
          words: detail,
          code,
          document: null,
          retry: false,
        }),
      ),
    ];
  });
  return { ...queue, uploads };
}

function refused(queue: Queue, id: number, refusal: Refusal, now: number): Queue {
  const upload = queue.uploads.find((one) => one.id === id);
  if (upload === undefined) return queue;
  const seconds = waitSeconds(refusal, upload.tries, upload.replaces !== null);
  if (seconds === null) {
    const { words, code } = refusal;
    return at(queue, id, () => ({
      ...upload,
      phase: { at: "failed", words, code, document: null, retry: !isFinal(refusal) },
    }));
  }
  const until = Math.max(now + seconds * 1000, queue.held?.until ?? 0);
  const waiting = at(queue, id, () => ({ ...upload, tries: upload.tries + 1, phase: { at: "waiting" } }));
  return { ...waiting, held: { until, because: refusal.because } };
}

function at(queue: Queue, id: number, change: (upload: Upload) => Upload): Queue {
  return { ...queue, uploads: queue.uploads.map((upload) => (upload.id === id ? change(upload) : upload)) };
}

/** Changes what is told of a document that is worked on, or that failed and was tried again. */
function ofDocument(queue: Queue, id: string, change: (upload: Upload, before: Document) => Upload): Queue {
  const uploads = queue.uploads.map((upload) => {
    const { phase } = upload;
    const before = phase.at === "working" || phase.at === "failed" ? phase.document : null;
    return before?.id === id ? change(upload, before) : upload;
  });
  return { ...queue, uploads };
}

function without(queue: Queue, gone: (upload: Upload) => boolean): Queue {
  const uploads = queue.uploads.filter((upload) => !gone(upload));
  return uploads.length === 0 ? EMPTY : { ...queue, uploads };
}
