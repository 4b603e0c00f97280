/** Our mark: a gate, let down into a channel. */
export function Mark({ size = 26 }: { size?: number }) {
  return (
    <svg className="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect className="mark-ground" width="32" height="32" rx="7" />
      <path d="M8 6v20M24 6v20" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" />
      <path d="M12 7h8v7.5h-8z" fill="#fff" />
      <path
        className="mark-water"
        d="M8.5 20.2c2.5-2 5-2 7.5 0s5 2 7.5 0M8.5 24.7c2.5-2 5-2 7.5 0s5 2 7.5 0"
        fill="none"
        strokeWidth="2.1"
        strokeLinecap="round"
      />
    </svg>
  );
}
