/** How large a page is shown, and where on it something is. */

const STEPS = [0.25, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4];
/** Points of 1/72 inch to the browser's pixels of 1/96. */
const PIXELS_A_POINT = 96 / 72;
/** More pixels than this in one canvas make phones give up. */
const MOST_PIXELS = 16_000_000;
const MARGIN = 24;
/** A page alone in a wide window grows no further by itself. */
const MOST_FITTED = 1.3;

/** In a room of so many pixels or more, the whole width of a page is shown at first: nothing of it is cut off. */
const ROOM_FOR_A_PAGE = 420;
/** Of a page's width: the words around a short passage are seen too. */
const LEAST_SHOWN = 0.6;

export interface Size {
  width: number;
  height: number;
}

/** A fixed share of the real size; as wide as there is room; or so that the passage fills the room. */
export type Zoom = number | "fit" | "passage";

/** Pixels a point at which a page is shown in a room of so many pixels.
 *
 * @param passage How many points wide the passage is.
 */
export function pixelsAPoint(zoom: Zoom, page: Size, room: number, passage: number): number {
  if (typeof zoom === "number") return zoom * PIXELS_A_POINT;
  const fit = Math.max(0.1, Math.min((room - MARGIN) / page.width, MOST_FITTED * PIXELS_A_POINT));
  if (zoom === "fit" || passage <= 0 || room >= ROOM_FOR_A_PAGE) return fit;
  // On a phone a whole page is too small to read: its passage alone may be large enough.
  const wide = Math.max(passage, LEAST_SHOWN * page.width);
  return Math.max(fit, Math.min((room - MARGIN) / wide, PIXELS_A_POINT));
}

/** The share of the real size that a scale in pixels a point is. */
export function shareOf(scale: number): number {
  return scale / PIXELS_A_POINT;
}

/** The next larger (+1) or smaller (-1) step from the share at hand. */
export function nextStep(share: number, direction: 1 | -1): number {
  const found =
    direction > 0 ? STEPS.find((step) => step > share * 1.01) : STEPS.findLast((step) => step < share * 0.99);
  return found ?? (direction > 0 ? (STEPS.at(-1) ?? share) : (STEPS[0] ?? share));
}

/** Canvas pixels for each pixel of the page: as sharp as the screen, unless that were too many. */
export function sharpness(size: Size, deviceRatio: number): number {
  return Math.min(Math.max(deviceRatio, 1), Math.sqrt(MOST_PIXELS / Math.max(size.width * size.height, 1)));
}

export type Box = readonly [left: number, top: number, right: number, bottom: number];

/** From where to where the boxes reach across their page, in points. */
export function reach(boxes: readonly Box[]): [left: number, right: number] {
  return [Math.min(...boxes.map(([left]) => left)), Math.max(...boxes.map(([, , right]) => right))];
}

/** A box in points as the shares of its page that style sheets take. */
export function boxStyle([left, top, right, bottom]: Box, page: Size) {
  const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(3)}%`;
  return {
    left: share(left, page.width),
    top: share(top, page.height),
    width: share(right - left, page.width),
    height: share(bottom - top, page.height),
  };
}
