const LONGEST_SHOWN = 300;
const LONGEST_TITLE = 2000;

interface Props {
  /** Text of somebody else's: names, values, messages. */
  text: string;
  /** Letters of one width, as for identifiers and values. */
  mono?: boolean;
  /** The most lines that it takes; one, if nothing is said. */
  lines?: number;
}

/**
 * Text from elsewhere, as text: apart from the direction of what stands around it, no longer than its place,
 * the whole on hover.
 */
export function Clip({ text, mono = false, lines = 1 }: Props) {
  const limit = LONGEST_SHOWN * lines;
  const shown = text.length > limit ? `${sliceWhole(text, limit)}…` : text;
  const title = text.length > LONGEST_TITLE ? `${sliceWhole(text, LONGEST_TITLE)}…` : text;
  return (
    <bdi
      className={`clip${mono ? " mono" : ""}${lines > 1 ? " lines" : ""}`}
      style={lines > 1 ? { WebkitLineClamp: lines } : undefined}
      title={title}
    >
      {visible(shown)}
    </bdi>
  );
}

/** Cut without halving a character that takes two units. */
function sliceWhole(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** Characters that show nothing, or turn the direction of text, as what they are. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (character) => {
      const code = character.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\u27e8${code.toString(16).padStart(4, "0")}\u27e9`;
    },
  );
}
