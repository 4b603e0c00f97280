/** Words of a shell and of YAML, so that what is shown can be copied and means what was chosen. */

// What shows nothing, or turns the direction of text: written as its number, so that it can be seen.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/;
const EACH_HIDDEN = new RegExp(HIDDEN.source, "g");
const SAFE_WORD = /^[A-Za-z0-9_./:,@%+-]+$/;

/** One word for a POSIX shell; `$'…'` where it has characters that are not seen. */
export function shellWord(text: string): string {
  if (SAFE_WORD.test(text)) return text;
  if (!HIDDEN.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replace(/[\\']/g, "\\$&").replace(EACH_HIDDEN, (character) => `\\u${codeOf(character)}`);
  return `$'${escaped}'`;
}

/** Words that YAML, in one of its versions, takes for something else than text. */
const RESERVED = /^(?:null|true|false|yes|no|on|off|y|n|nan|inf)$/i;
const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** Text as a scalar of YAML. `${` would stand for a variable in files of desired state; `$${` is `${` itself. */
export function yamlText(text: string): string {
  if (PLAIN.test(text) && !RESERVED.test(text)) return text;
  const whole = JSON.stringify(text.replaceAll("${", () => "$${"));
  return whole.replace(EACH_HIDDEN, (character) => `\\u${codeOf(character)}`);
}

/** A list of texts on one line. */
export function yamlList(texts: readonly string[]): string {
  return `[${texts.map(yamlText).join(", ")}]`;
}

function codeOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, "0");
}

/** An identifier of Spark's SQL, in backticks. */
export function sparkName(...parts: readonly string[]): string {
  return parts.map((part) => `\`${part.replaceAll("`", "``")}\``).join(".");
}

/** An identifier of standard SQL (DuckDB, Trino), in double quotes. */
export function sqlName(...parts: readonly string[]): string {
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}

/** Text for Spark's SQL. */
export function sparkText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Text for standard SQL. */
export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Text for Python: as JSON has it, which Python reads too. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replace(EACH_HIDDEN, (character) => `\\u${codeOf(character)}`);
}
