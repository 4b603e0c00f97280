import type { StorageRequest } from "@/api/storage";
import { shellWord } from "@/lib/quote";

/** What is asked about a storage location when it is added, and what is made of the answers. */

export const ENCRYPTIONS = ["none", "s3", "kms"] as const;
export type Encryption = (typeof ENCRYPTIONS)[number];

export interface LocationForm {
  name: string;
  uri: string;
  /** Whose store it is: AWS's, or another that speaks like S3. */
  store: "aws" | "other";
  region: string;
  endpoint: string;
  pathStyle: boolean;
  roleArn: string;
  externalId: string;
  encryption: Encryption;
  kmsKey: string;
}

export const EMPTY_LOCATION: LocationForm = {
  name: "",
  uri: "",
  store: "aws",
  region: "",
  endpoint: "",
  pathStyle: true,
  roleArn: "",
  externalId: "",
  encryption: "none",
  kmsKey: "",
};

const BUCKET = /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/.*)?$/;
const ROLE = /^arn:aws[a-z-]*:iam::\d{12}:role\/\S+$/;
const KMS_KEY = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)\/\S+$/;

/** What is wrong with what was typed so far, by field; nothing about what is still empty. */
export function locationErrors(form: LocationForm): Partial<Record<keyof LocationForm, string>> {
  const errors: Partial<Record<keyof LocationForm, string>> = {};
  if (form.uri !== "" && !BUCKET.test(form.uri.trim())) errors.uri = "Write it as s3://bucket or s3://bucket/prefix.";
  if (form.roleArn !== "" && !ROLE.test(form.roleArn.trim()))
    errors.roleArn = "Write it as arn:aws:iam::123456789012:role/NAME.";
  if (form.encryption === "kms" && form.kmsKey !== "" && !KMS_KEY.test(form.kmsKey.trim()))
    errors.kmsKey = "Write it as arn:aws:kms:REGION:123456789012:key/ID.";
  if (form.store === "other" && form.endpoint !== "" && !/^https?:\/\/[^\s/]+\/?$/.test(form.endpoint.trim()))
    errors.endpoint = "Write it as https://store.example:9000.";
  return errors;
}

/** Whether all is there that it takes. */
export function isComplete(form: LocationForm): boolean {
  if (Object.keys(locationErrors(form)).length > 0) return false;
  if (form.name.trim() === "" || form.uri.trim() === "") return false;
  if (form.store === "other" && form.endpoint.trim() === "") return false;
  return form.encryption !== "kms" || form.kmsKey.trim() !== "";
}

export function locationRequest(form: LocationForm): StorageRequest {
  const said = (text: string): string | null => text.trim() || null;
  const other = form.store === "other";
  const role = said(form.roleArn);
  return {
    name: form.name.trim(),
    uri: form.uri.trim().replace(/\/+$/, ""),
    region: said(form.region),
    endpoint: other ? said(form.endpoint) : null,
    path_style: other && form.pathStyle,
    role_arn: role,
    external_id: role === null ? null : said(form.externalId),
    encryption: form.encryption,
    kms_key: form.encryption === "kms" ? said(form.kmsKey) : null,
  };
}

/** The command that does the same. */
export function locationCommand(form: LocationForm): string {
  const request = locationRequest(form);
  const option = (flag: string, value: string | null | undefined): string[] =>
    value ? [`${flag} ${shellWord(value)}`] : [];
  return [
    `headgate storage add ${shellWord(request.name || "NAME")} ${shellWord(request.uri || "s3://BUCKET")}`,
    ...option("--role", request.role_arn),
    ...option("--external-id", request.external_id),
    ...option("--region", request.region),
    ...option("--endpoint", request.endpoint),
    ...(request.path_style ? ["--path-style"] : []),
    ...(request.encryption === "none" ? [] : option("--encryption", request.encryption)),
    ...option("--kms-key", request.kms_key),
  ].join(" \\\n    ");
}

/** An external id that nobody else has. */
export function newExternalId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `headgate-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
