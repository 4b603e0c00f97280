import { useQueryClient } from "@tanstack/react-query";
import { useAct } from "@/api/act";
import { api, unwrap } from "@/api/client";
import type { Session } from "@/api/model";
import { SESSION, useSession } from "@/api/session";
import { Tag } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { Icon } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { useGo } from "@/components/NavLink";
import { paths } from "@/lib/paths";

/** Who is signed in, what they may do, and the way out. */
export function UserMenu() {
  const session = useSession();
  const client = useQueryClient();
  const go = useGo();
  const signOut = useAct({
    run: () => unwrap(api.DELETE("/api/v1/session")),
    then: () => {
      // Nothing that was seen stays for whoever comes next.
      client.clear();
      client.setQueryData(SESSION, null);
      go(paths.signIn());
    },
  });
  if (session === null || session === undefined) return null;
  const isSession = session.by === "link" || session.by === "credential";
  return (
    <Menu
      label="Who is signed in"
      button={<Icon name="user" size={18} />}
      head={<Who session={session} />}
      items={
        isSession
          ? [
              {
                label: "Sign out",
                icon: "external",
                onSelect: () => {
                  signOut.mutate();
                },
              },
            ]
          : [
              {
                label: "Sign in with a credential",
                icon: "lock",
                onSelect: () => {
                  go(paths.signIn());
                },
              },
            ]
      }
    />
  );
}

const WAYS: Record<Session["by"], string> = {
  local: "as the user of this machine",
  link: "by a link",
  credential: "with a credential",
  token: "with a token",
};

function Who({ session }: { session: Session }) {
  return (
    <div className="who">
      <strong>
        <Clip text={session.name} />
      </strong>
      <span className="faint">{WAYS[session.by]}</span>
      <div>
        {session.is_admin ? (
          <Tag>admin</Tag>
        ) : (
          session.roles.map((grant) => (
            <Tag key={`${grant.role} ${grant.namespace} ${grant.table}`}>{`${grant.role} of ${grant.table}`}</Tag>
          ))
        )}
      </div>
    </div>
  );
}
