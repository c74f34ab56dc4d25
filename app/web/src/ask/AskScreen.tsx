/** Where questions are asked: the conversations, the one at hand, and the passage that is looked at. */
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useSession } from "../session/session";
import { t } from "../strings";
import { ConversationDrawer } from "./ConversationDrawer";
import { ConversationList } from "./ConversationList";
import { ConversationView } from "./ConversationView";
import { ROOMY, useMedia, WIDE } from "./media";
import type { Passage } from "./places";
import { runsOf } from "./runs";
import "./ask.css";
import "./answer.css";
import "./outcome.css";
import "./sources.css";
import "./composer.css";

const PassagePanel = lazy(() => import("../viewer/PassagePanel"));

/** `conversation` is the id of one that is gone on with, null for a new one. */
export function AskScreen({ conversation }: { conversation: string | null }) {
  const session = useSession();
  const queries = useQueryClient();
  const runs = runsOf(session, queries);
  const wide = useMedia(WIDE);
  const roomy = useMedia(ROOMY);
  const [, navigate] = useLocation();
  const [looked, setLooking] = useState<{ passage: Passage; conversation: string | null } | null>(null);
  const here = useRef(conversation);
  // A passage belongs to the conversation it was opened from.
  const looking = wide && looked?.conversation === conversation ? looked.passage : null;

  useEffect(() => {
    here.current = conversation;
    return () => {
      here.current = "elsewhere";
    };
  }, [conversation]);

  /** A conversation that has just begun gets its address, unless one has gone elsewhere meanwhile. */
  function begun(id: string) {
    if (here.current === null) navigate(`/c/${id}`, { replace: true });
  }

  return (
    <div className={looking !== null ? "ask ask-looking" : "ask"}>
      {roomy ? (
        <aside className="ask-side" aria-label={t.ask.conversations.heading}>
          <ConversationList current={conversation} runs={runs} />
        </aside>
      ) : (
        <ConversationDrawer current={conversation} runs={runs} />
      )}
      <ConversationView
        key={conversation ?? "new"}
        conversation={conversation}
        runs={runs}
        onBegun={begun}
        onOpen={wide ? (passage) => setLooking({ passage, conversation }) : null}
      />
      {looking !== null && (
        <div className="ask-passage">
          <Suspense fallback={<p className="centred quiet">{t.loading}</p>}>
            <PassagePanel passage={looking} onClose={() => setLooking(null)} />
          </Suspense>
        </div>
      )}
    </div>
  );
}
