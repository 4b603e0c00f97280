import type { ReactNode } from "react";

const shapes = {
  overview: <path d="M3 12.5 8 7l3.5 3.5L17 4M3 17h14" />,
  topics: <path d="M3 5h9M3 10h14M3 15h6M15 5h2M12 15h5" />,
  tables: <path d="M3 4h14v12H3zM3 8h14M8 8v8" />,
  statements: <path d="m6 6-3.5 4L6 14M14 6l3.5 4-3.5 4M11.5 4l-3 12" />,
  integrations: <path d="M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3" />,
  exports: <path d="M10 12V3m0 0L6.5 6.5M10 3l3.5 3.5M3.5 12v4.5h13V12" />,
  activity: <path d="M2.5 10h3.2l2.3-6 4 12 2.3-6h3.2" />,
  settings: (
    <>
      <path d="M3 6h6M13 6h4M3 14h3M10 14h7" />
      <circle cx="11" cy="6" r="2" />
      <circle cx="8" cy="14" r="2" />
    </>
  ),
  search: (
    <>
      <circle cx="9" cy="9" r="5.5" />
      <path d="m13.2 13.2 4 4" />
    </>
  ),
  copy: <path d="M7 7h9.5v9.5H7zM13 7V3.5H3.5V13H7" />,
  check: <path d="m3.5 10.5 4 4 9-9" />,
  close: <path d="m5 5 10 10M15 5 5 15" />,
  up: <path d="m5 12 5-5 5 5" />,
  down: <path d="m5 8 5 5 5-5" />,
  right: <path d="m8 5 5 5-5 5" />,
  left: <path d="m12 5-5 5 5 5" />,
  sun: (
    <>
      <circle cx="10" cy="10" r="3.5" />
      <path d="M10 2v2M10 16v2M2 10h2M16 10h2M4.3 4.3l1.4 1.4M14.3 14.3l1.4 1.4M4.3 15.7l1.4-1.4M14.3 5.7l1.4-1.4" />
    </>
  ),
  moon: <path d="M16.5 12A7 7 0 1 1 8 3.5a5.6 5.6 0 0 0 8.5 8.5z" />,
  system: <path d="M3 4h14v9H3zM7.5 17h5M10 13v4" />,
  user: (
    <>
      <circle cx="10" cy="6.5" r="3.2" />
      <path d="M3.5 17c.6-3.6 3.2-5 6.5-5s5.9 1.4 6.5 5" />
    </>
  ),
  warning: <path d="M10 3 2.5 16.5h15zM10 8v4M10 14.2v.1" />,
  info: (
    <>
      <circle cx="10" cy="10" r="7.2" />
      <path d="M10 9.2V14M10 6.4v.1" />
    </>
  ),
  star: <path d="m10 2.8 2.2 4.7 5.1.6-3.8 3.5 1 5.1L10 14.2l-4.5 2.5 1-5.1L2.7 8.1l5.1-.6z" />,
  starred: (
    <path
      fill="currentColor"
      d="m10 2.8 2.2 4.7 5.1.6-3.8 3.5 1 5.1L10 14.2l-4.5 2.5 1-5.1L2.7 8.1l5.1-.6z"
    />
  ),
  plus: <path d="M10 4v12M4 10h12" />,
  play: <path d="M6 4v12l10-6z" />,
  pause: <path d="M7 4v12M13 4v12" />,
  refresh: <path d="M16.5 8A7 7 0 1 0 17 11M17 4v4h-4" />,
  trash: <path d="M3.5 5.5h13M8 5.5V3.5h4v2M5.5 5.5l.8 11h7.4l.8-11" />,
  more: <path d="M5 10h.01M10 10h.01M15 10h.01" strokeWidth="2.6" />,
  menu: <path d="M3 5.5h14M3 10h14M3 14.5h14" />,
  external: <path d="M8 4H4v12h12v-4M11 3.5h5.5V9M16 4l-7 7" />,
  download: <path d="M10 3v9m0 0 3.5-3.5M10 12 6.5 8.5M3.5 14v2.5h13V14" />,
  clock: (
    <>
      <circle cx="10" cy="10" r="7" />
      <path d="M10 6v4l2.8 2" />
    </>
  ),
  filter: <path d="M3 4.5h14l-5.5 6.5v5l-3-1.5V11z" />,
  lock: <path d="M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 6 0V9" />,
  send: <path d="M3 10 17 3.5 12.5 17 9.5 11.5z" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof shapes;

/** A small drawing beside words; it says nothing that they do not. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {shapes[name]}
    </svg>
  );
}
