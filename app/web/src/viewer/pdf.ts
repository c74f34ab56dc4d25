/** pdf.js, which is loaded when the first PDF is opened. Its worker, character maps, fonts and decoders are files of the
 * build and come from where the page comes from. */
import * as pdfjs from "pdfjs-dist/legacy/build/pdf.mjs";
import worker from "pdfjs-dist/legacy/build/pdf.worker.min.mjs?url";
import { send } from "../api/http";

export type { PDFDocumentProxy, PDFPageProxy, RenderTask } from "pdfjs-dist/legacy/build/pdf.mjs";

pdfjs.GlobalWorkerOptions.workerSrc = worker;

/** Addresses of what pdf.js asks for by name while it draws. */
const files = new Map(
  Object.entries({
    ...import.meta.glob<string>("../../node_modules/pdfjs-dist/cmaps/*.bcmap", {
      query: "?url",
      import: "default",
      eager: true,
    }),
    ...import.meta.glob<string>("../../node_modules/pdfjs-dist/standard_fonts/*.{pfb,ttf}", {
      query: "?url",
      import: "default",
      eager: true,
    }),
    // Pictures as scanners make them (JBIG2, fax, JPEG 2000) have no other decoder.
    ...import.meta.glob<string>("../../node_modules/pdfjs-dist/wasm/{jbig2,openjpeg}.wasm", {
      query: "?url",
      import: "default",
      eager: true,
    }),
  }).map(([path, url]) => [path.slice(path.lastIndexOf("/") + 1), url]),
);

/** Reads them here: the worker's policy lets it ask nobody. */
class BuiltFiles {
  async fetch({ filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    const url = files.get(filename);
    if (url === undefined) throw new Error(`pdf.js asks for ${filename}, which is not in the build`);
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${filename}: ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  }
}

/** The bytes of a version's original. */
export async function readFile(id: string, version: number | null, signal: AbortSignal): Promise<Uint8Array> {
  const response = await send(`v1/documents/${encodeURIComponent(id)}/file`, { query: { version }, signal });
  return new Uint8Array(await response.arrayBuffer());
}

/** Open a PDF of these bytes, which are pdf.js's from now on. `onLocked` is told what tries a password, and whether one
 * was wrong. */
export function open(data: Uint8Array, onLocked: (attempt: (password: string) => void, wrong: boolean) => void) {
  const task = pdfjs.getDocument({
    data,
    BinaryDataFactory: BuiltFiles,
    useWorkerFetch: false,
    useSystemFonts: false, // ours have the widths that such files count on
    isEvalSupported: false,
    enableXfa: false,
    verbosity: pdfjs.VerbosityLevel.ERRORS,
  });
  task.onPassword = (attempt: (password: string) => void, reason: number) =>
    onLocked(attempt, reason === pdfjs.PasswordResponses.INCORRECT_PASSWORD);
  return task;
}

/** Fills an element with a page's text, see-through, over its picture: to select, to search, and to be read aloud. */
export function textLayer(page: pdfjs.PDFPageProxy, container: HTMLElement, scale: number) {
  return new pdfjs.TextLayer({
    textContentSource: page.streamTextContent(),
    container,
    viewport: page.getViewport({ scale }),
  });
}
