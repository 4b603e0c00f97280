import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type ErrorComponentProps,
} from "@tanstack/react-router";
import { ErrorNotice, Spinner } from "./components/Notices";
import { Page } from "./components/Page";
import { parseSearch, stringifySearch, type SearchParams } from "./lib/search";
import { SignIn } from "./pages/sign-in/SignIn";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";

/** All pages by their addresses. Each is a file of its own, and is loaded when it is gone to. */

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  validateSearch: (search): SearchParams => search as SearchParams,
});

const routes = [
  createRoute({
    path: "/",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/overview/Overview"), "Overview"),
  }),
  createRoute({
    path: "/topics",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/topics/Topics"), "Topics"),
  }),
  createRoute({
    path: "/topics/$name",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/topics/Topic"), "Topic"),
  }),
  createRoute({
    path: "/tables",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/tables/Tables"), "Tables"),
  }),
  createRoute({
    path: "/tables/+enable",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/tables/EnableTable"), "EnableTable"),
  }),
  createRoute({
    path: "/tables/$name",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/tables/Table"), "Table"),
  }),
  createRoute({
    path: "/statements",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/statements/Statements"), "Statements"),
  }),
  createRoute({
    path: "/statements/$name",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/statements/Statement"), "Statement"),
  }),
  createRoute({
    path: "/integrations",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/integrations/Integrations"), "Integrations"),
  }),
  createRoute({
    path: "/integrations/$kind/+new",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/integrations/AddIntegration"), "AddIntegration"),
  }),
  createRoute({
    path: "/integrations/$kind/$name",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/integrations/Integration"), "Integration"),
  }),
  createRoute({
    path: "/exports",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/exports/Exports"), "Exports"),
  }),
  createRoute({
    path: "/exports/$name",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/exports/Export"), "Export"),
  }),
  createRoute({
    path: "/activity",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/activity/Activity"), "Activity"),
  }),
  createRoute({
    path: "/settings",
    getParentRoute: () => root,
    component: lazyRouteComponent(() => import("./pages/settings/Settings"), "Settings"),
  }),
  createRoute({
    path: "/sign-in",
    getParentRoute: () => root,
    component: SignIn,
  }),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch,
  stringifySearch,
  defaultPreload: false,
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Spinner />,
  defaultErrorComponent: PageFailed,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

/** Shown in place of a page that could not be shown: after an update, or where we made a mistake. */
function PageFailed({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="This page cannot be shown">
      <ErrorNotice error={error} retry={reset} />
    </Page>
  );
}
