/** A version's PDF, opened; closed again when nobody looks at it any more. */
import { useEffect, useState } from "react";
import type { PDFDocumentProxy } from "./pdf";
import type { Size } from "./zoom";

export interface Opened {
  pdf: PDFDocumentProxy;
  /** Of the first page, which the others are likely to have. */
  size: Size;
}

export interface Locked {
  attempt: (password: string) => void;
  wrong: boolean;
}

export interface PdfState {
  opened: Opened | null;
  locked: Locked | null;
  problem: unknown;
}

const NOTHING: PdfState = { opened: null, locked: null, problem: null };

export function usePdf(id: string, version: number | null): PdfState {
  const [state, setState] = useState(NOTHING);

  useEffect(() => {
    const gone = new AbortController();
    const closing: (() => void)[] = [];
    setState(NOTHING);

    async function load() {
      const { open, readFile } = await import("./pdf");
      const bytes = await readFile(id, version, gone.signal);
      if (gone.signal.aborted) return;
      const task = open(bytes, (attempt, wrong) => {
        if (!gone.signal.aborted) setState({ ...NOTHING, locked: { attempt, wrong } });
      });
      closing.push(() => void task.destroy());
      const pdf = await task.promise;
      const { width, height } = (await pdf.getPage(1)).getViewport({ scale: 1 });
      if (!gone.signal.aborted) setState({ ...NOTHING, opened: { pdf, size: { width, height } } });
    }

    load().catch((problem: unknown) => {
      if (!gone.signal.aborted) setState({ ...NOTHING, problem });
    });
    return () => {
      gone.abort();
      for (const close of closing) close();
    };
  }, [id, version]);

  return state;
}
