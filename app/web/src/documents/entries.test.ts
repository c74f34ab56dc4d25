import { expect, it } from "vitest";
import { gatherChosen, gatherDropped } from "./entries";

type Tree = { [name: string]: Tree | string | Error };

/** A file or a folder as a browser gives it: a folder's reader tells `atOnce` entries at a time. */
function entry(name: string, content: Tree | string | Error, atOnce = 2): FileSystemEntry {
  if (typeof content === "string" || content instanceof Error) {
    const file = (found: (file: File) => void, failed: (error: Error) => void) =>
      typeof content === "string" ? found(new File([content], name)) : failed(content);
    return { name, isFile: true, isDirectory: false, file } as unknown as FileSystemEntry;
  }
  const createReader = () => {
    const left = Object.entries(content).map(([inside, one]) => entry(inside, one, atOnce));
    return { readEntries: (found: (entries: FileSystemEntry[]) => void) => found(left.splice(0, atOnce)) };
  };
  return { name, isFile: false, isDirectory: true, createReader } as unknown as FileSystemEntry;
}

it("finds every file in folders, in the order of their names", async () => {
  const folder = entry("reports", {
    "b10.txt": "x",
    "b9.txt": "x",
    sub: { deep: { "c.md": "x" } },
    "a 😀.pdf": "x",
    ".DS_Store": "x",
    ".git": { config: "x" },
    "Thumbs.db": "x",
  });
  const plain = new File(["x"], "plain.txt");
  const { files, leftOut, unreadable } = await gatherDropped([entry("single.txt", "x"), plain, folder]);
  expect(files.map(({ path }) => path)).toEqual([
    "single.txt",
    "plain.txt",
    "reports/a 😀.pdf",
    "reports/b9.txt",
    "reports/b10.txt",
    "reports/sub/deep/c.md",
  ]);
  expect(leftOut).toBe(3);
  expect(unreadable).toEqual([]);
});

it("reads a folder of more files than a browser tells at once", async () => {
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, place) => [`${place}.txt`, "x"]));
  expect((await gatherDropped([entry("many", many, 100)])).files).toHaveLength(250);
});

it("goes on where a file cannot be read, and says which", async () => {
  const folder = entry("f", { "a.txt": new Error("moved"), "b.txt": "x" });
  const { files, unreadable } = await gatherDropped([folder]);
  expect(files.map(({ path }) => path)).toEqual(["f/b.txt"]);
  expect(unreadable).toEqual(["f/a.txt"]);
});

it("takes a chosen folder's paths, without what systems leave in it", () => {
  const file = (name: string, path = "") => Object.assign(new File(["x"], name), { webkitRelativePath: path });
  // A browser's own property of that name cannot be set; of the test's environment it can.
  const { files, leftOut } = gatherChosen([
    file("a.txt"),
    file("b.txt", "folder/b.txt"),
    file("c", "folder/.git/c"),
    file("~$d.docx", "folder/~$d.docx"),
  ]);
  expect(files.map(({ path }) => path)).toEqual(["a.txt", "folder/b.txt"]);
  expect(leftOut).toBe(2);
});
