import { useState, type ReactNode } from "react";
import { useCan, useSession } from "@/api/session";
import { Page } from "@/components/Page";
import { Notice } from "@/components/Notices";
import { Button } from "@/components/Button";
import { useGo } from "@/components/NavLink";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { mayEnable } from "./rights";
import { NOTHING_SAID, problemsOf, type Problems, type Wanted } from "./wanted";
import { BehaviourStep, FormatStep, RowsStep, TopicStep, type StepProps } from "./EnableSteps";
import { Launched } from "./Launched";
import { Review } from "./Review";
import "./tables.css";

const STEPS = [
  { id: "topic", label: "Topic", fields: ["topic"] },
  { id: "format", label: "Format and storage", fields: ["location", "bucket", "role"] },
  { id: "rows", label: "Rows and layout", fields: ["key", "partition", "eventTime", "valueColumns", "keyColumns", "start"] },
  { id: "behaviour", label: "Behaviour", fields: ["freshness", "deadLetters"] },
  { id: "review", label: "Review", fields: [] },
] as const satisfies readonly { id: string; label: string; fields: readonly (keyof Wanted)[] }[];

type StepId = (typeof STEPS)[number]["id"];

/** The wizard that makes a topic a table: step by step, reviewed, launched, and watched until it runs. */
export function EnableTable() {
  const [topic] = useSearchParam("topic");
  const [step] = useSearchParam("step", topic === "" ? "topic" : "format");
  const session = useSession();
  const can = useCan();
  if (step === "launched" && topic !== "") return <LaunchedPage topic={topic} />;
  const title = "Enable a topic as table";
  const from = { label: "Tables", href: paths.tables() };
  if (session != null && !mayEnable(session))
    return (
      <Page title={title} from={from}>
        <Notice tone="warn" title="Your role does not allow this">
          Whoever makes tables needs the role writer for their topics. Ask an admin for a credential with it.
        </Notice>
      </Page>
    );
  return (
    <Page title={title} from={from} about="Its records are rows of a table that any engine can read, seconds after they come.">
      <Wizard key="wizard" topic={topic} step={step} isAdmin={can("admin")} />
    </Page>
  );
}

function LaunchedPage({ topic }: { topic: string }) {
  return (
    <Page title={topic} from={{ label: "Tables", href: paths.tables() }} about="is becoming a table">
      <Launched topic={topic} />
    </Page>
  );
}

function Wizard({ topic, step, isAdmin }: { topic: string; step: string; isAdmin: boolean }) {
  const go = useGo();
  const [draft, setDraft] = useState<Wanted>(NOTHING_SAID);
  const [tried, setTried] = useState<ReadonlySet<string>>(new Set());
  const wanted = { ...draft, topic };
  const problems = problemsOf(wanted);
  const first = STEPS.findIndex(({ fields }) => hasProblem(problems, fields));
  const asked = Math.max(0, STEPS.findIndex(({ id }) => id === step));
  // A later step is shown only when those before it hold together.
  const at = first === -1 ? asked : Math.min(asked, first);
  const current = STEPS[at] ?? STEPS[0];
  const move = (index: number, chosen = topic): void => {
    go(paths.enableTable(chosen || undefined, { step: STEPS[index]?.id }));
  };
  const props: StepProps = {
    wanted,
    isAdmin,
    problems: tried.has(current.id) ? problems : {},
    change: (part) => {
      setDraft((before) => ({ ...before, ...part }));
    },
  };
  const next = (): void => {
    if (hasProblem(problems, current.fields)) setTried((before) => new Set([...before, current.id]));
    else move(at + 1);
  };
  const panels: Record<StepId, () => ReactNode> = {
    topic: () => (
      <TopicStep
        {...props}
        choose={(chosen) => {
          go(paths.enableTable(chosen, { step: "topic" }), { replace: true });
        }}
      />
    ),
    format: () => <FormatStep {...props} />,
    rows: () => <RowsStep {...props} />,
    behaviour: () => <BehaviourStep {...props} />,
    review: () => <Review wanted={wanted} isAdmin={isAdmin} edit={move} />,
  };
  return (
    <div className="wizard">
      <Progression at={at} reachable={first === -1 ? STEPS.length - 1 : first} go={move} />
      <form
        className="wizard-step"
        onSubmit={(event) => {
          event.preventDefault();
          next();
        }}
      >
        {panels[current.id]()}
        {current.id !== "review" && (
          <footer>
            {at > 0 && (
              <Button
                onClick={() => {
                  move(at - 1);
                }}
              >
                Back
              </Button>
            )}
            <span className="spacer" />
            {at > 0 && first === -1 && at < STEPS.length - 2 && (
              <Button
                kind="quiet"
                onClick={() => {
                  move(STEPS.length - 1);
                }}
              >
                Skip to review
              </Button>
            )}
            <Button kind="primary" type="submit">
              Continue
            </Button>
          </footer>
        )}
      </form>
    </div>
  );
}

function hasProblem(problems: Problems, fields: readonly (keyof Wanted)[]): boolean {
  return fields.some((field) => problems[field] !== undefined);
}

interface ProgressionProps {
  at: number;
  /** The furthest step that can be gone to. */
  reachable: number;
  go: (index: number) => void;
}

function Progression({ at, reachable, go }: ProgressionProps) {
  return (
    <nav aria-label="Steps" className="wizard-steps">
      <ol>
        {STEPS.map(({ id, label }, index) => (
          <li key={id} className={index < at ? "done" : ""}>
            <button
              type="button"
              aria-current={index === at ? "step" : undefined}
              disabled={index > reachable}
              onClick={() => {
                go(index);
              }}
            >
              <span className="wizard-number" aria-hidden="true">
                {index < at ? "✓" : index + 1}
              </span>
              {label}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}
