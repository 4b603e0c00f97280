import { expect, test } from "vitest";
import { credentialCommand, credentialRequest, grantWords } from "@/pages/integrations/grants";
import { catalogCommand, catalogRequest, missing } from "@/pages/integrations/catalogs";
import { findCredential } from "@/pages/integrations/CredentialPage";
import {
  EMPTY_LOCATION,
  isComplete,
  locationCommand,
  locationErrors,
  locationRequest,
  newExternalId,
} from "@/pages/integrations/locations";
import { countsOf, reasonOf } from "@/pages/integrations/states";

test("a catalog is asked for with what was said, and no more", () => {
  const answers = { url: " https://dbc-1.example.com ", catalog: "main", client_id: "1f2e", secret: "databricks", region: "x", scope: "" };
  expect(catalogRequest("unity", " lake ", answers)).toEqual({
    name: "lake",
    kind: "unity",
    options: { url: "https://dbc-1.example.com", catalog: "main", client_id: "1f2e", secret: "databricks" },
  });
  expect(missing("unity", "", { url: "https://x" })).toEqual(["Name", "Unity catalog", "Client id", "Client secret"]);
  expect(missing("glue", "athena", {})).toEqual([]);
});

test("a catalog's command is quoted for a shell", () => {
  expect(catalogCommand("rest", "a b", { uri: "https://c.example/$(x)", client_id: "" })).toBe(
    "headgate catalog add rest 'a b' \\\n    --uri 'https://c.example/$(x)'",
  );
  expect(catalogCommand("glue", "", { role_arn: "arn:aws:iam::123456789012:role/lake" })).toBe(
    "headgate catalog add glue NAME \\\n    --role-arn arn:aws:iam::123456789012:role/lake",
  );
});

test("a location at AWS has no endpoint, and an external id only with a role", () => {
  const form = { ...EMPTY_LOCATION, name: "archive", uri: "s3://archive/tables/", endpoint: "http://left.over", externalId: "hg-1" };
  expect(locationRequest(form)).toMatchObject({
    uri: "s3://archive/tables",
    endpoint: null,
    path_style: false,
    external_id: null,
  });
  const other = { ...form, store: "other" as const, roleArn: "arn:aws:iam::123456789012:role/lake" };
  expect(locationRequest(other)).toMatchObject({ endpoint: "http://left.over", path_style: true, external_id: "hg-1" });
  expect(locationCommand(other)).toBe(
    [
      "headgate storage add archive s3://archive/tables",
      "--role arn:aws:iam::123456789012:role/lake",
      "--external-id hg-1",
      "--endpoint http://left.over",
      "--path-style",
    ].join(" \\\n    "),
  );
});

test("a location is complete when nothing of it is missing or wrong", () => {
  const form = { ...EMPTY_LOCATION, name: "archive", uri: "s3://archive" };
  expect(isComplete(form)).toBe(true);
  expect(isComplete({ ...form, store: "other" })).toBe(false);
  expect(isComplete({ ...form, encryption: "kms" })).toBe(false);
  expect(locationErrors({ ...form, uri: "archive/tables", roleArn: "lake" })).toEqual({
    uri: expect.stringContaining("s3://") as string,
    roleArn: expect.stringContaining("arn:aws:iam") as string,
  });
  expect(newExternalId()).not.toBe(newExternalId());
});

test("grants are asked for as they are shown, and shown in words", () => {
  const rows = [
    { role: "writer", namespace: "sandbox", table: "" },
    { role: "reader", namespace: "local", table: "shop.*" },
  ] as const;
  expect(credentialRequest("etl", rows)).toEqual({
    name: "etl",
    role: "writer",
    namespace: "sandbox",
    table: "*",
    grants: ["reader:local:shop.*"],
  });
  expect(credentialCommand("etl", rows)).toBe(
    "headgate credentials create etl --role writer --namespace sandbox --grant 'reader:local:shop.*'",
  );
  expect(grantWords("admin:*:*")).toBe("admin of everything");
  expect(grantWords("reader:local:shop.*")).toBe("reader of shop.* in local");
  expect(grantWords("writer:sandbox:*")).toBe("writer of everything in sandbox");
  expect(grantWords("reader:local:a:b")).toBe("reader of a:b in local");
  expect(grantWords("unheard:of")).toBe("unheard:of");
});

test("a credential goes by its client id, or its name: the one that still opens something first", () => {
  const one = { name: "etl", client_id: "old", grants: [], created_at: 1, revoked_at: 2 };
  const two = { ...one, client_id: "new", revoked_at: null };
  expect(findCredential([one, two], "etl")).toBe(two);
  expect(findCredential([two, one], "old")).toBe(one);
  expect(findCredential([one], "etl")).toBe(one);
  expect(findCredential([one], "another")).toBeUndefined();
});

test("a catalog that waits says what for", () => {
  const pending = { state: "Pending", reason: "", desired: "present" } as const;
  expect(reasonOf({ ...pending, kind: "unity" })).toContain("Delta table");
  expect(reasonOf({ ...pending, kind: "glue" })).toContain("engine");
  expect(reasonOf({ ...pending, kind: "glue", reason: "Because." })).toBe("Because.");
  expect(reasonOf({ ...pending, kind: "glue", desired: "removed" })).toContain("taken out");
  expect(countsOf(["Synced", "Failed", "Synced"])).toBe("1 failed, 2 synced");
});
