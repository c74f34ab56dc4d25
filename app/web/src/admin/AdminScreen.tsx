import { lazy, Suspense, useEffect, useRef } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { useSession } from "../session/session";
import { t } from "../strings";
import "../ui/lists.css";
import "./admin.css";
import { AuditSection } from "./AuditSection";
import { BudgetsSection } from "./BudgetsSection";
import { FeedbackSection } from "./FeedbackSection";
import { HealthSection } from "./HealthSection";
import { KeysSection } from "./KeysSection";
import { LimitsSection } from "./LimitsSection";
import { ModelsSection } from "./ModelsSection";
import { PricesSection } from "./PricesSection";
import { TenantsSection } from "./TenantsSection";
import { UsersSection } from "./UsersSection";

const OverviewSection = lazy(() => import("../overview/OverviewSection"));

const SECTIONS = {
  overview: OverviewSection,
  keys: KeysSection,
  users: UsersSection,
  tenants: TenantsSection,
  prices: PricesSection,
  budgets: BudgetsSection,
  limits: LimitsSection,
  models: ModelsSection,
  health: HealthSection,
  feedback: FeedbackSection,
  audit: AuditSection,
} as const;
type Name = keyof typeof SECTIONS;

/** Everything an administrator manages, a part at a time. */
export default function AdminScreen() {
  const session = useSession();
  const [location] = useLocation();
  const parts = useRef<HTMLElement>(null);
  // On a phone not all parts fit; the one that is open is shown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another place is another part
  useEffect(() => {
    parts.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [location]);
  const limited = session.collections !== null;
  const names = (Object.keys(SECTIONS) as Name[]).filter((name) => {
    if (limited) return name === "keys";
    return name !== "tenants" || session.operator;
  });
  return (
    <div className="screen admin">
      <h1>{t.admin.title}</h1>
      <nav className="parts" ref={parts} aria-label={t.admin.sections.label}>
        {names.map((name) => (
          <Link
            key={name}
            href={`/admin/${name}`}
            aria-current={location.startsWith(`/admin/${name}`) ? "page" : undefined}
          >
            {t.admin.sections[name]}
          </Link>
        ))}
      </nav>
      {limited && <p className="quiet">{t.admin.limited}</p>}
      <Suspense fallback={<p className="quiet">{t.loading}</p>}>
        <Switch>
          {names.map((name) => (
            <Route key={name} path={`/admin/${name}`} component={SECTIONS[name]} />
          ))}
          <Route path="/admin">
            <Redirect to={limited ? "/admin/keys" : "/admin/overview"} replace />
          </Route>
          <Route>
            <p className="quiet">{t.admin.notHere}</p>
          </Route>
        </Switch>
      </Suspense>
    </div>
  );
}
