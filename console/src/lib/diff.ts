/** The difference of two texts by lines. */

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

const MOST_CELLS = 4_000_000;

/** The lines of both, in order: those that are kept, those that went, those that came. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail])
    tail += 1;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...now.slice(0, head).map(same),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...now.slice(now.length - tail).map(same),
  ];
}

/** By the longest common subsequence; of very long texts all went and all came. */
function middle(old: readonly string[], now: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (old.length * now.length > MOST_CELLS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const before = old[i];
    const after = now[j];
    if (before !== undefined && before === after) {
      lines.push({ kind: "same", text: before });
      i += 1;
      j += 1;
    } else if (before !== undefined && (after === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(before));
      i += 1;
    } else if (after !== undefined) {
      lines.push(added(after));
      j += 1;
    }
  }
  return lines;
}

/** JSON as people read it; what is no JSON (Protobuf) stays as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
