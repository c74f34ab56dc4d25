import { describe, expect, it } from "vitest";
import { sizeWords, timeWords } from "./words";

describe("sizes", () => {
  it.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [999, "999 bytes"],
    [1000, "1 kB"],
    [1234, "1.2 kB"],
    [81_234, "81 kB"],
    [999_499, "999 kB"],
    [999_999, "1 MB"],
    [5_250_000, "5.3 MB"],
    [2_000_000_000, "2 GB"],
  ])("%d is %s", (bytes, words) => {
    expect(sizeWords(bytes, "en")).toBe(words);
  });
});

it("tells a moment as shortly as it can", () => {
  const now = new Date(2026, 10, 22, 18, 0);
  const words = (...of: [number, number, number, number]) => timeWords(new Date(...of).toISOString(), now, "en-GB");
  expect(words(2026, 10, 22, 9)).toBe("09:00");
  expect(words(2026, 10, 21, 9)).toBe("21 Nov");
  expect(words(2025, 10, 22, 9)).toBe("22 Nov 2025");
});
