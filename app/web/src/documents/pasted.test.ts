import { expect, test } from "vitest";
import { addressIn, gatherText, nameOf } from "./pasted";

test("a pasted text is named by its first words", () => {
  expect(nameOf("The Aldey line: fares\nA ticket costs 4 euros.", "Pasted text")).toBe("The Aldey line fares.txt");
  expect(nameOf("  \n", "Pasted text")).toBe("Pasted text.txt");
  expect(nameOf("***\nwords", "Pasted text")).toBe("Pasted text.txt");
});

test("a long first line is cut behind a word", () => {
  const name = nameOf("word ".repeat(40), "Pasted text");
  expect(name.length).toBeLessThanOrEqual(52);
  expect(name).toMatch(/word\.txt$/);
});

test("the text becomes one file, letter for letter", async () => {
  const { files, leftOut, unreadable } = gatherText("Grüße\n\nfrom the island", "Pasted text");
  expect([files.length, leftOut, unreadable.length]).toEqual([1, 0, 0]);
  expect(await files[0]?.file.text()).toBe("Grüße\n\nfrom the island");
  expect(files[0]?.path).toBe("Grüße.txt");
});

test("a text is an address where it is nothing else", () => {
  expect(addressIn(" https://example.org/a%20b.pdf?x=1 \n")).toBe("https://example.org/a%20b.pdf?x=1");
  expect(addressIn("HTTP://example.org")).toBe("HTTP://example.org");
  for (const text of [
    "",
    "example.org",
    "see https://example.org",
    "https://a.example\nhttps://b.example",
    "https://",
  ]) {
    expect(addressIn(text)).toBeNull();
  }
  expect(addressIn("javascript:alert(1)")).toBeNull();
  expect(addressIn("file:///etc/passwd")).toBeNull();
});
