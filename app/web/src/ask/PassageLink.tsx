/** A link to a footnote's passage: beside the conversation where there is room, else in the viewer. */
import type { ReactNode } from "react";
import type { Citation } from "../api/types";
import { isElsewhere } from "./FootnoteMark";
import { passageHref } from "./places";

interface PassageLinkProps {
  citation: Citation;
  onOpen: ((citation: Citation) => void) | null;
  children: ReactNode;
}

export function PassageLink({ citation, onOpen, children }: PassageLinkProps) {
  return (
    <a
      href={passageHref(citation)}
      onClick={(event) => {
        if (onOpen === null || isElsewhere(event)) return;
        event.preventDefault();
        onOpen(citation);
      }}
    >
      {children}
    </a>
  );
}
