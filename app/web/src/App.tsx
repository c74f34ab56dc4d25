import { lazy, Suspense, useEffect, useRef } from "react";
import { Link, Route, Router, Switch, useLocation } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";
import { AskScreen } from "./ask/AskScreen";
import { useOtherTabs } from "./ask/acrossTabs";
import { DropAnywhere } from "./documents/DropAnywhere";
import { UploadProvider } from "./documents/UploadProvider";
import { PaletteKey } from "./palette/PaletteKey";
import { FirstKey, JoinOrStay, SignInOrJoin } from "./session/Invitation";
import { SwitchOrStay } from "./session/OfferedKey";
import { SessionProvider, useCurrentSession, useSession, useSignOut } from "./session/session";
import { t } from "./strings";
import { FailureBoundary } from "./ui/FailureBoundary";
import { NoticeProvider } from "./ui/notices";
import { ProblemNote } from "./ui/ProblemNote";
import { ThemeButton } from "./ui/theme";
import { WatchedLink } from "./watches/WatchedLink";

const DocumentsScreen = lazy(() => import("./documents/DocumentsScreen"));
const ViewerScreen = lazy(() => import("./viewer/ViewerScreen"));
const UsageScreen = lazy(() => import("./usage/UsageScreen"));
const TablesScreen = lazy(() => import("./tables/TablesScreen"));
const TableScreen = lazy(() => import("./tables/TableScreen"));
const WatchesScreen = lazy(() => import("./watches/WatchesScreen"));
const AdminScreen = lazy(() => import("./admin/AdminScreen"));

/** The page: signing in, and then the screens. The place in it is in the address's fragment, which no proxy's path
 * and no server has to know about. */
export function App() {
  const session = useCurrentSession();
  if (session.isPending) return <p className="centred quiet">{t.loading}</p>;
  if (session.isError) {
    return (
      <main className="sign-in">
        <ProblemNote problem={session.error} onRetry={() => void session.refetch()} />
      </main>
    );
  }
  if (session.data === null) return <SignInOrJoin />;
  return (
    <SessionProvider session={session.data}>
      <NoticeProvider>
        <UploadProvider>
          <Router hook={useHashLocation}>
            <Shell />
            <SwitchOrStay session={session.data} />
            <JoinOrStay session={session.data} />
            <FirstKey session={session.data} />
          </Router>
        </UploadProvider>
      </NoticeProvider>
    </SessionProvider>
  );
}

function Shell() {
  const session = useSession();
  const signOut = useSignOut();
  const [location] = useLocation();
  useOtherTabs();
  return (
    <>
      <button type="button" className="skip" onClick={() => document.getElementById("content")?.focus()}>
        {t.nav.skip}
      </button>
      <header className="top">
        <strong className="brand">
          <img src="./icon.svg" alt="" width="22" height="22" /> {t.product}
        </strong>
        <nav aria-label={t.nav.label}>
          <NavLink to="/" also="/c/" label={t.nav.ask} />
          <NavLink to="/documents" also="/tables" label={t.nav.documents} />
          <WatchedLink />
          <NavLink to="/usage" label={t.nav.usage} />
          {session.role === "admin" && <NavLink to="/admin" label={t.nav.admin} />}
        </nav>
        <div className="who">
          <span className="quiet small" title={t.nav.who(session.user_id, session.tenant_id)}>
            {session.user_name}
          </span>
          <PaletteKey />
          <ThemeButton />
          <button type="button" className="plain" onClick={() => void signOut()}>
            {t.nav.signOut}
          </button>
        </div>
      </header>
      <DropAnywhere />
      <main id="content" tabIndex={-1}>
        <FailureBoundary place={location}>
          <Suspense fallback={<p className="centred quiet">{t.loading}</p>}>
            <Switch>
              <Route path="/">
                <AskScreen conversation={null} />
              </Route>
              <Route path="/c/:id">{({ id }) => <AskScreen conversation={id} />}</Route>
              <Route path="/documents" component={DocumentsScreen} />
              <Route path="/documents/:id">{({ id }) => <ViewerScreen document={id} />}</Route>
              <Route path="/tables" component={TablesScreen} />
              <Route path="/tables/:id">{({ id }) => <TableScreen key={id} table={id} />}</Route>
              <Route path="/watches" component={WatchesScreen} />
              <Route path="/usage" component={UsageScreen} />
              <Route path="/admin/*?" component={AdminScreen} />
              <Route>
                <p className="centred">{t.notFound}</p>
              </Route>
            </Switch>
          </Suspense>
        </FailureBoundary>
      </main>
    </>
  );
}

function NavLink({ to, also, label }: { to: string; also?: string; label: string }) {
  const [location] = useLocation();
  const link = useRef<HTMLAnchorElement>(null);
  const here =
    location === to ||
    (to !== "/" && location.startsWith(`${to}/`)) ||
    (also !== undefined && location.startsWith(also));
  // On a phone the bar is wider than the screen.
  useEffect(() => {
    if (here) link.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [here]);
  return (
    <Link ref={link} href={to} aria-current={here ? "page" : undefined}>
      {label}
    </Link>
  );
}
