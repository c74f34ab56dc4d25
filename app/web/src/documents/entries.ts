/** Files out of what was dropped or chosen, folders with all that is in them. */

/** A file to add, and where it lay in the folder that was dropped. */
export interface Found {
  file: File;
  path: string;
}

export interface Gathered {
  files: Found[];
  /** Hidden files and what systems leave in folders. */
  leftOut: number;
  /** Names that could not be read: moved meanwhile, or not allowed. */
  unreadable: string[];
}

const FOREIGN = new Set(["thumbs.db", "desktop.ini", "__macosx", "icon\r"]);

/** Whether a name is one that people do not put there themselves. */
export function isForeign(name: string): boolean {
  return name.startsWith(".") || name.startsWith("~$") || FOREIGN.has(name.toLowerCase());
}

/** The files of a file input; of a folder the paths begin with the folder's name. */
export function gatherChosen(chosen: Iterable<File>): Gathered {
  const gathered: Gathered = { files: [], leftOut: 0, unreadable: [] };
  for (const file of chosen) {
    const path = file.webkitRelativePath || file.name;
    if (path.split("/").some(isForeign)) gathered.leftOut += 1;
    else gathered.files.push({ file, path });
  }
  // Browsers give a folder's files in the order its disk has them.
  if (gathered.files.some(({ path }) => path.includes("/"))) gathered.files.sort((a, b) => byName(a.path, b.path));
  return gathered;
}

/** What a drop brings; it is only to be had while the drop is being handled. */
export function entriesOf(items: DataTransferItemList): (FileSystemEntry | File)[] {
  return Array.from(items)
    .filter((item) => item.kind === "file")
    .map((item) => item.webkitGetAsEntry() ?? item.getAsFile()) // from another page, a file may come without an entry
    .filter((entry) => entry !== null);
}

/** Every file under the entries, in the order of their names. */
export async function gatherDropped(entries: readonly (FileSystemEntry | File)[]): Promise<Gathered> {
  const gathered: Gathered = { files: [], leftOut: 0, unreadable: [] };
  for (const entry of entries) {
    if (entry instanceof File) gathered.files.push({ file: entry, path: entry.name });
    else await walk(entry, entry.name, gathered);
  }
  return gathered;
}

async function walk(entry: FileSystemEntry, path: string, into: Gathered): Promise<void> {
  if (isForeign(entry.name)) {
    into.leftOut += 1;
    return;
  }
  try {
    if (isFile(entry)) into.files.push({ file: await fileOf(entry), path });
    else if (isFolder(entry)) {
      const inside = await listing(entry);
      inside.sort((a, b) => byName(a.name, b.name));
      for (const one of inside) await walk(one, `${path}/${one.name}`, into);
    }
  } catch {
    into.unreadable.push(path);
  }
}

/** What is in a folder. A reader gives some at a time (Chromium 100) and nothing at the end. */
async function listing(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

function byName(one: string, other: string): number {
  return one.localeCompare(other, undefined, { numeric: true });
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}
