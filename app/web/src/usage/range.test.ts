import { expect, test } from "vitest";
import { type Range, spanOf, wrongWith } from "./range";

const at = (text: string) => Date.parse(text) / 1000;
const preset = (preset: Range["preset"]): Range => ({ preset, from: "", to: "" });
const custom = (from: string, to: string): Range => ({ preset: "custom", from, to });

test("today is the zone's own day, by the hour", () => {
  expect(spanOf(preset("today"), "Asia/Tokyo", at("2025-11-20T16:00:00Z"))).toEqual({
    start: at("2025-11-20T15:00:00Z"),
    end: at("2025-11-21T15:00:00Z"),
    width: "1h",
  });
});

test("the last days end with today", () => {
  expect(spanOf(preset("week"), "UTC", at("2025-11-20T16:00:00Z"))).toEqual({
    start: at("2025-11-14T00:00:00Z"),
    end: at("2025-11-21T00:00:00Z"),
    width: "1d",
  });
  expect(spanOf(preset("days30"), "UTC", at("2025-11-20T16:00:00Z")).start).toBe(at("2025-10-22T00:00:00Z"));
});

test("the month begins with its first day, also on that day", () => {
  expect(spanOf(preset("month"), "UTC", at("2025-11-20T16:00:00Z")).start).toBe(at("2025-11-01T00:00:00Z"));
  expect(spanOf(preset("month"), "UTC", at("2025-11-01T00:00:00Z"))).toEqual({
    start: at("2025-11-01T00:00:00Z"),
    end: at("2025-11-02T00:00:00Z"),
    width: "1h",
  });
});

test("a range over a change of clocks is an hour longer or shorter", () => {
  const days = spanOf(custom("2025-10-25", "2025-10-27"), "Europe/Berlin", 0);
  expect(days.end - days.start).toBe(3 * 86_400 + 3600);
  const spring = spanOf(custom("2025-03-30", "2025-03-30"), "Europe/Berlin", 0);
  expect(spring.end - spring.start).toBe(23 * 3600);
});

test("long ranges have wide bars", () => {
  expect(spanOf(custom("2025-01-01", "2025-01-03"), "UTC", 0).width).toBe("1d");
  expect(spanOf(custom("2025-01-01", "2025-12-31"), "UTC", 0).width).toBe("1mo");
});

test("says what is wrong with a range", () => {
  expect(wrongWith(preset("today"))).toBeNull();
  expect(wrongWith(custom("2025-01-01", "2025-01-01"))).toBeNull();
  expect(wrongWith(custom("2025-01-02", "2025-01-01"))).toBe("backwards");
  expect(wrongWith(custom("", "2025-01-01"))).toBe("incomplete");
  expect(wrongWith(custom("1990-01-01", "2025-01-01"))).toBe("tooLong");
});
