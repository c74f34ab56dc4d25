/** Takes files that are dropped on a screen that has no place of its own for them. */
import { useLocation } from "wouter";
import { useSession } from "../session/session";
import { t } from "../strings";
import "./addFiles.css";
import { useDrop } from "./dropping";
import { useAdding } from "./useAdding";

export function DropAnywhere() {
  const { role, collections } = useSession();
  const add = useAdding();
  const [, navigate] = useLocation();
  const isOver = useDrop(
    (gathered) => {
      if (add(gathered, null)) navigate("/documents");
    },
    // A key that is limited to collections has to choose one, where documents are.
    () => role === "reader" || collections !== null || document.querySelector(".add-files") !== null,
  );
  if (!isOver) return null;
  return (
    <div className="drop-here" aria-hidden="true">
      <div>
        <strong>{t.documents.dropHere}</strong>
      </div>
    </div>
  );
}
