import "./meter.css";

interface MeterProps {
  /** From 0 to 1; more is shown as full. */
  share: number;
  /** What it measures, for who does not see it. */
  label: string;
  /** The same in words, such as “3 of 10”. */
  text: string;
  /** A second part after the first: what is held but not taken yet. */
  held?: number;
  /** Progress has no good and bad end. */
  plain?: boolean;
}

/** How much of something there is: a bar that turns to a warning as it fills. The words beside it say the numbers. */
export function Meter({ share, label, text, held = 0, plain = false }: MeterProps) {
  const taken = within(share);
  const tone = plain ? "" : share >= 1 ? " bad" : share + held >= 0.8 ? " warn" : "";
  return (
    <div className={`meter${tone}`}>
      <meter className="visually-hidden" value={taken} aria-label={label} aria-valuetext={text}>
        {text}
      </meter>
      <span style={{ inlineSize: `${taken * 100}%` }} />
      {held > 0 && <span className="held" style={{ inlineSize: `${within(Math.min(held, 1 - taken)) * 100}%` }} />}
    </div>
  );
}

function within(share: number): number {
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 1;
}
