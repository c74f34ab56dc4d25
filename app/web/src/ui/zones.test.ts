import { expect, test } from "vitest";
import { dayAt, dayStart, daysBetween, daysLater, everyZone } from "./zones";

const at = (text: string) => Date.parse(text) / 1000;

test("a day begins at midnight of its zone", () => {
  expect(dayStart("2025-11-20", "UTC")).toBe(at("2025-11-20T00:00:00Z"));
  expect(dayStart("2025-11-20", "Europe/Berlin")).toBe(at("2025-11-19T23:00:00Z"));
  expect(dayStart("2025-11-20", "Asia/Kathmandu")).toBe(at("2025-11-19T18:15:00Z"));
  expect(dayStart("2025-11-20", "Pacific/Kiritimati")).toBe(at("2025-11-19T10:00:00Z"));
  expect(dayStart("2025-11-20", "Pacific/Pago_Pago")).toBe(at("2025-11-20T11:00:00Z"));
});

test("days around a change of clocks have 23 hours and 25", () => {
  const hours = (day: string) => (dayStart(daysLater(day, 1), "Europe/Berlin") - dayStart(day, "Europe/Berlin")) / 3600;
  expect(hours("2025-03-30")).toBe(23);
  expect(hours("2025-10-26")).toBe(25);
  expect(hours("2025-10-27")).toBe(24);
});

test("where clocks skip midnight, the day begins when they do", () => {
  // Beirut went from 23:59:59 to 01:00 on 31 March 2024.
  expect(dayStart("2024-03-31", "Asia/Beirut")).toBe(at("2024-03-30T22:00:00Z"));
});

test("where clocks go back over midnight, the first midnight counts", () => {
  // Havana shows 00:00 to 00:59 twice on 3 November 2024.
  expect(dayStart("2024-11-03", "America/Havana")).toBe(at("2024-11-03T04:00:00Z"));
});

test("says which day it is", () => {
  expect(dayAt(at("2025-11-19T23:30:00Z"), "Europe/Berlin")).toBe("2025-11-20");
  expect(dayAt(at("2025-11-19T23:30:00Z"), "America/New_York")).toBe("2025-11-19");
});

test("counts days across months and leap days", () => {
  expect(daysLater("2024-02-28", 2)).toBe("2024-03-01");
  expect(daysLater("2025-01-01", -1)).toBe("2024-12-31");
  expect(daysBetween("2024-02-28", "2024-03-01")).toBe(2);
});

test("every zone is there once, and UTC", () => {
  const zones = everyZone();
  expect(zones[0]).toBe("UTC");
  expect(new Set(zones).size).toBe(zones.length);
  expect(zones).toContain("Europe/Berlin");
});
