import address from "../assets/the-aldey-ferry.md?url";
import type { Gathered } from "./entries";

const NAME = "The Aldey ferry.md";

/** The document that comes with the page, to try it with. */
export async function gatherSample(): Promise<Gathered> {
  const response = await fetch(address);
  if (!response.ok) return { files: [], leftOut: 0, unreadable: [NAME] };
  const file = new File([await response.blob()], NAME, { type: "text/markdown" });
  return { files: [{ file, path: NAME }], leftOut: 0, unreadable: [] };
}
