import { describe, expect, it } from "vitest";
import { boxStyle, nextStep, pixelsAPoint, reach, shareOf, sharpness } from "./zoom";

describe("zoom", () => {
  const letter = { width: 612, height: 792 };

  it("shows the real size at 1", () => {
    expect(pixelsAPoint(1, letter, 300, 0)).toBeCloseTo(96 / 72);
    expect(shareOf(pixelsAPoint(1.5, letter, 300, 0))).toBeCloseTo(1.5);
  });

  it("fits the width, and makes no poster of a stamp", () => {
    expect(612 * pixelsAPoint("fit", letter, 636, 0)).toBeCloseTo(612);
    expect(shareOf(pixelsAPoint("fit", { width: 50, height: 50 }, 1000, 0))).toBeCloseTo(1.3);
    expect(pixelsAPoint("fit", letter, 0, 0)).toBeGreaterThan(0);
  });

  it("makes a passage readable on a phone, and no larger than it is", () => {
    expect(400 * pixelsAPoint("passage", letter, 374, 400)).toBeCloseTo(350);
    expect(0.6 * 612 * pixelsAPoint("passage", letter, 374, 40)).toBeCloseTo(350);
    expect(pixelsAPoint("passage", letter, 374, 0)).toBe(pixelsAPoint("fit", letter, 374, 0));
    expect(pixelsAPoint("passage", letter, 1200, 300)).toBe(pixelsAPoint("fit", letter, 1200, 300));
  });

  it("cuts nothing off beside an answer", () => {
    for (const room of [428, 503, 530, 700]) {
      expect(612 * pixelsAPoint("passage", letter, room, 300)).toBeLessThan(room);
      expect(1440 * pixelsAPoint("passage", { width: 1440, height: 810 }, room, 300)).toBeLessThan(room);
    }
  });

  it("goes from step to step and stays at the ends", () => {
    expect(nextStep(1, 1)).toBe(1.25);
    expect(nextStep(1, -1)).toBe(0.8);
    expect(nextStep(0.93, 1)).toBe(1);
    expect(nextStep(4, 1)).toBe(4);
    expect(nextStep(0.2, -1)).toBe(0.25);
  });

  it("is as sharp as the screen while that is possible", () => {
    expect(sharpness({ width: 600, height: 800 }, 2)).toBe(2);
    expect(sharpness({ width: 600, height: 800 }, 0.5)).toBe(1);
    expect(sharpness({ width: 4000, height: 8000 }, 2)).toBeLessThan(1);
  });
});

describe("a box", () => {
  it("reaches as far as the widest with it", () => {
    expect(
      reach([
        [300, 10, 400, 20],
        [72, 22, 390, 32],
      ]),
    ).toEqual([72, 400]);
  });

  it("lies at its share of the page", () => {
    expect(boxStyle([61.2, 79.2, 306, 95.04], { width: 612, height: 792 })).toEqual({
      left: "10.000%",
      top: "10.000%",
      width: "40.000%",
      height: "2.000%",
    });
  });
});
