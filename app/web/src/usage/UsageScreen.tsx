import { useSession } from "../session/session";
import { t } from "../strings";
import { Books } from "./Books";
import { OwnUse } from "./OwnUse";
import { ReportPanel } from "./ReportPanel";
import "../ui/lists.css";
import "./usage.css";

/** What was used and what it cost: one's own for everyone, and everybody's for administrators. */
export default function UsageScreen() {
  const session = useSession();
  const everybody = session.role === "admin" && session.collections === null;
  return (
    <div className="screen usage">
      <h1>{t.usage.title}</h1>
      <OwnUse />
      {everybody && <ReportPanel />}
      {everybody && session.operator && <Books />}
      {session.role === "admin" && !everybody && <p className="quiet">{t.usage.limited}</p>}
    </div>
  );
}
