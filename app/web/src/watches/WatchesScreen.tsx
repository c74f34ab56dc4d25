/** The watched questions, each with its answer now and with what changed. */
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { useSession } from "../session/session";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { WatchedQuestion } from "./WatchedQuestion";
import { freshOf, noteSeen, seenAt, useWatches } from "./watches";
import "../ui/lists.css";
import "./watches.css";

export default function WatchesScreen() {
  const words = t.watches;
  const { user_id: user } = useSession();
  const [before] = useState(() => seenAt(user)); // what is new stays so until the screen is left
  const found = useWatches({ fresh: true });
  const watches = found.data?.data;
  useEffect(() => {
    if (watches !== undefined) noteSeen(user, watches);
  }, [user, watches]);
  const fresh = new Set(freshOf(watches ?? [], before).map((one) => one.id));
  return (
    <div className="screen stack">
      <h1>{words.heading}</h1>
      <p className="quiet">{words.lead}</p>
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {watches?.length === 0 && (
        <p>
          {words.none} <Link href="/">{words.ask}</Link>
        </p>
      )}
      {watches !== undefined && watches.length > 0 && (
        <ul className="plain-list watches">
          {watches.map((watch) => (
            <li key={watch.id}>
              <WatchedQuestion watch={watch} fresh={fresh.has(watch.id)} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
