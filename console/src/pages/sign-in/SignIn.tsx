import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useAct } from "@/api/act";
import { api, unwrap } from "@/api/client";
import { SESSION } from "@/api/session";
import { Button } from "@/components/Button";
import { Command } from "@/components/CodeBlock";
import { TextField } from "@/components/Form";
import { useGo } from "@/components/NavLink";
import { ErrorNotice } from "@/components/Notices";
import { useSearchParam } from "@/lib/search";
import { Mark } from "@/shell/Mark";
import "./sign-in.css";

/** Where somebody signs in with a credential. */
export function SignIn() {
  const [clientId, setClientId] = useState("");
  const [secret, setSecret] = useState("");
  const [next] = useSearchParam("next", "");
  const client = useQueryClient();
  const go = useGo();
  useEffect(() => {
    document.title = "Sign in · Headgate";
  }, []);
  const signIn = useAct({
    run: () => unwrap(api.POST("/api/v1/session", { body: { client_id: clientId.trim(), client_secret: secret } })),
    quiet: true,
    refresh: [SESSION],
    then: () => {
      setSecret("");
      client.removeQueries({ predicate: (query) => query.queryKey[0] !== SESSION[0] });
      if (location.pathname === "/sign-in") go(isOwnPath(next) ? next : "/", { replace: true });
    },
  });
  const ready = clientId.trim() !== "" && secret !== "";
  return (
    <main className="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) signIn.mutate();
        }}
      >
        <div className="sign-in-head">
          <Mark size={40} />
          <h1>Headgate</h1>
          <p className="faint">Sign in with a credential</p>
        </div>
        <TextField label="Client id" value={clientId} onChange={setClientId} name="username" autoComplete="username" required />
        <TextField
          label="Client secret"
          type="password"
          value={secret}
          onChange={setSecret}
          name="password"
          autoComplete="current-password"
          required
        />
        {signIn.isError && <ErrorNotice error={signIn.error} />}
        <Button type="submit" kind="primary" disabled={!ready} busy={signIn.isPending}>
          Sign in
        </Button>
        <div className="sign-in-help">
          <p>On the machine where Headgate runs, the link that <code>headgate up</code> prints signs in without one.</p>
          <p>
            No credential yet? <Command text="headgate credentials create me --role admin" />
          </p>
        </div>
      </form>
    </main>
  );
}

/** An address of the console itself: nothing that a link could lead elsewhere with. */
export function isOwnPath(path: string): boolean {
  return /^\/(?![/\\])/.test(path) && !path.startsWith("/sign-in") && new URL(path, location.origin).origin === location.origin;
}
