/** The console's own addresses: each page, with what it is about. A topic's name cannot begin with `+`. */

type Search = Record<string, string | undefined>;

function withSearch(path: string, search?: Search): string {
  const entries = Object.entries(search ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const text = new URLSearchParams(entries).toString();
  return text ? `${path}?${text}` : path;
}

const name = encodeURIComponent;

export const paths = {
  overview: () => "/",
  topics: (search?: Search) => withSearch("/topics", search),
  topic: (topic: string, search?: Search) => withSearch(`/topics/${name(topic)}`, search),
  tables: (search?: Search) => withSearch("/tables", search),
  table: (topic: string, search?: Search) => withSearch(`/tables/${name(topic)}`, search),
  /** The wizard that makes a topic a table. */
  enableTable: (topic?: string, search?: Search) => withSearch("/tables/+enable", { topic, ...search }),
  statements: (search?: Search) => withSearch("/statements", search),
  statement: (statement: string, search?: Search) => withSearch(`/statements/${name(statement)}`, search),
  integrations: (search?: Search) => withSearch("/integrations", search),
  /** One storage location, catalog or credential. */
  integration: (kind: "storage" | "catalogs" | "credentials", which: string) =>
    `/integrations/${kind}/${name(which)}`,
  /** The form that adds one. */
  addIntegration: (kind: "storage" | "catalogs" | "credentials", search?: Search) =>
    withSearch(`/integrations/${kind}/+new`, search),
  exports: (search?: Search) => withSearch("/exports", search),
  export: (which: string) => `/exports/${name(which)}`,
  activity: (search?: Search) => withSearch("/activity", search),
  settings: (search?: Search) => withSearch("/settings", search),
  signIn: (next?: string) => withSearch("/sign-in", { next }),
} as const;
