import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { useSession } from "../session/session";
import { NO_CONDITIONS } from "./filter";
import { runsOf } from "./runs";

/** Asks a question of one document, in a conversation of its own, from whatever screen one is on. */
export function useAskAbout(): (question: string, document: { id: string; name: string }) => void {
  const session = useSession();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  return (question, document) => {
    const scope = { collections: [], documents: [document], conditions: NO_CONDITIONS };
    navigate("/");
    void runsOf(session, queries).ask({ conversation: null, question, scope, length: "normal" }, (id) => {
      // Unless one has gone elsewhere meanwhile.
      if (["", "#", "#/"].includes(window.location.hash)) navigate(`/c/${id}`, { replace: true });
    });
  };
}
