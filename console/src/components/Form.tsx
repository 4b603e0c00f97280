import { useId, type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes } from "react";

interface FieldLooks {
  label: string;
  /** What it means, or how it is written. */
  hint?: ReactNode;
  /** What is wrong with it. */
  error?: string | undefined;
}

interface FieldProps extends FieldLooks {
  optional?: boolean;
  children: (control: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ReactNode;
}

/** A control with its label, hint and error, tied together for screen readers. */
export function Field({ label, hint, error, optional = false, children }: FieldProps) {
  const id = useId();
  const about = error !== undefined ? `${id}-error` : hint !== undefined ? `${id}-hint` : undefined;
  return (
    <div className={error === undefined ? "field" : "field invalid"}>
      <label htmlFor={id}>
        {label}
        {optional && <span className="faint"> optional</span>}
      </label>
      {children({ id, "aria-describedby": about, "aria-invalid": error === undefined ? undefined : true })}
      {hint !== undefined && error === undefined && (
        <div className="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {error !== undefined && (
        <div className="error" id={`${id}-error`} role="alert">
          <bdi>{error}</bdi>
        </div>
      )}
    </div>
  );
}

interface Valued {
  value: string;
  onChange: (value: string) => void;
  optional?: boolean;
}

type Input = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "children">;

export function TextField({ label, hint, error, value, onChange, optional, ...rest }: FieldLooks & Valued & Input) {
  return (
    <Field {...{ label, error }} {...(hint === undefined ? {} : { hint })} optional={optional ?? false}>
      {(control) => (
        <input
          dir="auto"
          autoComplete="off"
          spellCheck={false}
          {...rest}
          {...control}
          value={value}
          onChange={(event) => {
            onChange(event.target.value);
          }}
        />
      )}
    </Field>
  );
}

type Area = Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "value" | "onChange" | "children">;

export function TextArea({ label, hint, error, value, onChange, optional, ...rest }: FieldLooks & Valued & Area) {
  return (
    <Field {...{ label, error }} {...(hint === undefined ? {} : { hint })} optional={optional ?? false}>
      {(control) => (
        <textarea
          dir="auto"
          rows={4}
          spellCheck={false}
          {...rest}
          {...control}
          value={value}
          onChange={(event) => {
            onChange(event.target.value);
          }}
        />
      )}
    </Field>
  );
}

export interface Option<Value extends string = string> {
  value: Value;
  label: string;
}

interface SelectProps<Value extends string> extends FieldLooks {
  value: Value;
  onChange: (value: Value) => void;
  options: readonly Option<Value>[];
  disabled?: boolean;
}

export function SelectField<Value extends string>({ label, hint, error, value, onChange, options, disabled = false }: SelectProps<Value>) {
  return (
    <Field {...{ label, error }} {...(hint === undefined ? {} : { hint })}>
      {(control) => <Select {...control} {...{ value, onChange, options, disabled }} />}
    </Field>
  );
}

interface BareSelect<Value extends string> {
  value: Value;
  onChange: (value: Value) => void;
  options: readonly Option<Value>[];
  disabled?: boolean;
  id?: string;
  "aria-label"?: string;
  "aria-describedby"?: string | undefined;
  "aria-invalid"?: boolean | undefined;
}

/** A choice of few without a label of its own, as in tool bars: give it an `aria-label`. */
export function Select<Value extends string>({ value, onChange, options, ...rest }: BareSelect<Value>) {
  return (
    <select
      {...rest}
      value={value}
      onChange={(event) => {
        const chosen = options.find((option) => option.value === event.target.value);
        if (chosen !== undefined) onChange(chosen.value);
      }}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

interface CheckProps {
  label: ReactNode;
  hint?: ReactNode;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function CheckField({ label, hint, checked, onChange, disabled = false }: CheckProps) {
  const id = useId();
  return (
    <div className="check">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => {
          onChange(event.target.checked);
        }}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && (
          <div className="hint" id={`${id}-hint`}>
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}

export interface Tile<Value extends string = string> extends Option<Value> {
  description?: ReactNode;
  disabled?: boolean;
  icon?: ReactNode;
}

interface TilesProps<Value extends string> {
  label: string;
  value: Value;
  onChange: (value: Value) => void;
  tiles: readonly Tile<Value>[];
}

/** One of several, as tiles with a few words each: radio buttons, so the arrow keys choose. */
export function Tiles<Value extends string>({ label, value, onChange, tiles }: TilesProps<Value>) {
  const name = useId();
  return (
    <fieldset className="tiles">
      <legend>{label}</legend>
      <div>
        {tiles.map((tile) => (
          <label key={tile.value} className={tile.value === value ? "tile chosen" : "tile"}>
            <input
              type="radio"
              name={name}
              checked={tile.value === value}
              disabled={tile.disabled}
              onChange={() => {
                onChange(tile.value);
              }}
            />
            <span className="tile-label">
              {tile.icon}
              {tile.label}
            </span>
            {tile.description !== undefined && <span className="hint">{tile.description}</span>}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A field for a search, with its icon; `label` is for screen readers. */
export function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <input
      className="search"
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      dir="auto"
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => {
        onChange(event.target.value);
      }}
    />
  );
}
