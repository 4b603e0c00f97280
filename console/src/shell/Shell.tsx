import { Outlet, useLocation } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { LiveProvider, useLive } from "@/api/LiveProvider";
import { fetchSession, SESSION, useCan } from "@/api/session";
import { useAttention, useStatus } from "@/api/status";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { NavLink } from "@/components/NavLink";
import { ErrorNotice, Spinner } from "@/components/Notices";
import { SignIn } from "@/pages/sign-in/SignIn";
import { paths } from "@/lib/paths";
import { JumpDialog } from "./Jump";
import { Mark } from "./Mark";
import { SECTIONS } from "./sections";
import { ThemeMenu } from "./ThemeMenu";
import { UserMenu } from "./UserMenu";

/** What stands around each page; without a session it is the sign-in page instead. */
export function Shell() {
  const session = useQuery({ queryKey: SESSION, queryFn: fetchSession, staleTime: 60_000, refetchInterval: 300_000 });
  const path = useLocation({ select: (location) => location.pathname });
  if (session.isPending) return <Spinner label="Headgate" />;
  if (session.data === undefined)
    return (
      <main className="alone">
        <Mark />
        <ErrorNotice error={session.error} retry={() => void session.refetch()} />
      </main>
    );
  if (session.data === null || path === paths.signIn()) return <SignIn />;
  return (
    // A change of who is signed in begins everything again.
    <LiveProvider key={`${session.data.by} ${session.data.name}`}>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="shell">
        <Rail path={path} />
        <div className="stage">
          <TopBar />
          <Offline />
          <main id="main" tabIndex={-1}>
            <Suspense fallback={<Spinner />}>
              <Outlet />
            </Suspense>
          </main>
        </div>
      </div>
    </LiveProvider>
  );
}

function Rail({ path }: { path: string }) {
  const can = useCan();
  const attention = useAttention().length;
  return (
    <nav className="rail" aria-label="Sections">
      <NavLink className="brand" href={paths.overview()} aria-label="Headgate: overview">
        <Mark />
        <span>Headgate</span>
      </NavLink>
      <ul>
        {SECTIONS.filter((section) => section.admin !== true || can("admin")).map((section) => {
          const here = section.href === "/" ? path === "/" : path.startsWith(section.href);
          return (
            <li key={section.href}>
              <NavLink href={section.href} aria-current={here ? "page" : undefined}>
                <Icon name={section.icon} size={18} />
                <span>{section.label}</span>
                {section.href === "/" && attention > 0 && (
                  <span className="rail-count" title={`${attention} need attention`}>
                    {attention}
                  </span>
                )}
              </NavLink>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function TopBar() {
  const status = useStatus().data;
  return (
    <header className="top-bar">
      <NavLink className="brand" href={paths.overview()} aria-label="Headgate: overview">
        <Mark />
      </NavLink>
      <div className="cluster" title={status === undefined ? undefined : `Headgate ${status.version}`}>
        <LiveMark />
        <bdi>{status?.cluster ?? ""}</bdi>
      </div>
      <JumpDialog />
      <ThemeMenu />
      <UserMenu />
    </header>
  );
}

function LiveMark() {
  const { state } = useLive();
  const words = { live: "Live", connecting: "Connecting", offline: "Offline" }[state];
  return (
    <span className={`live-mark ${state}`} title={state === "live" ? "What is shown changes as it happens." : words}>
      <span className="dot" aria-hidden="true" />
      <span className="visually-hidden">{words}</span>
    </span>
  );
}

function Offline() {
  const { state, retry } = useLive();
  if (state !== "offline") return null;
  return (
    <div className="offline" role="alert">
      <Icon name="warning" />
      <span>Headgate does not answer: what is shown may be old. This page tries again by itself.</span>
      <Button small onClick={retry}>
        Try now
      </Button>
    </div>
  );
}
