/** The way to the watched questions, with the number of those that changed since they were looked at. */
import { Link, useLocation } from "wouter";
import { useSession } from "../session/session";
import { t } from "../strings";
import { countText } from "../ui/numbers";
import { freshOf, seenAt, useWatches } from "./watches";
import "./watchedLink.css";

export function WatchedLink() {
  const words = t.watches;
  const { user_id: user } = useSession();
  const [location] = useLocation();
  const found = useWatches();
  const here = location === "/watches";
  const fresh = here ? 0 : freshOf(found.data?.data ?? [], seenAt(user)).length;
  return (
    <Link href="/watches" aria-current={here ? "page" : undefined}>
      {t.nav.watches}
      {fresh > 0 && (
        <>
          {" "}
          <span className="watched-fresh" aria-hidden="true">
            {countText(fresh)}
          </span>
          <span className="visually-hidden">({words.fresh(fresh)})</span>
        </>
      )}
    </Link>
  );
}
