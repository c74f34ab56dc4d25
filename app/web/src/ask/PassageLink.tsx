/** A link to a passage: beside the conversation where there is room, else in the viewer. */
import type { ReactNode } from "react";
import { isElsewhere } from "./FootnoteMark";
import { type Passage, passageHref } from "./places";

interface PassageLinkProps<Found extends Passage> {
  passage: Found;
  onOpen: ((passage: Found) => void) | null;
  className?: string;
  children: ReactNode;
}

export function PassageLink<Found extends Passage>({ passage, onOpen, className, children }: PassageLinkProps<Found>) {
  return (
    <a
      href={passageHref(passage)}
      className={className}
      onClick={(event) => {
        if (onOpen === null || isElsewhere(event)) return;
        event.preventDefault();
        onOpen(passage);
      }}
    >
      {children}
    </a>
  );
}
