import type { ReactNode } from "react";

interface RowButtonProps {
  /** What it acts on: every row has a button of the same name, and not everybody sees which row it is in. */
  of: string;
  danger?: boolean;
  disabled?: boolean;
  onClick: () => void;
  children: ReactNode;
}

/** A button in a row. */
export function RowButton({ of, danger = false, disabled = false, onClick, children }: RowButtonProps) {
  return (
    <button type="button" className={danger ? "danger" : undefined} disabled={disabled} onClick={onClick}>
      {children}
      <span className="visually-hidden"> {of}</span>
    </button>
  );
}
