/** Parts of a whole as one bar, with the numbers in a table below it. */

interface PartsBarProps {
  parts: readonly { name: string; label: string; value: number }[];
  label: string;
  /** What the parts are. */
  column: string;
  total: { label: string; value: number };
  said: (value: number) => string;
}

const GAP = 0.4;

export function PartsBar({ parts, label, column, total, said }: PartsBarProps) {
  const whole = Math.max(
    1e-9,
    parts.reduce((sum, part) => sum + part.value, 0),
  );
  let at = 0;
  return (
    <figure className="ask-parts">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={label}>
        {parts.map((part, place) => {
          const width = (part.value / whole) * 100;
          const x = at;
          at += width;
          return (
            <rect
              key={part.name}
              className={`ask-c${place + 1}`}
              x={x}
              y={0}
              width={Math.max(0.2, width - GAP)}
              height={10}
            >
              <title>{`${part.label}: ${said(part.value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <table className="small ask-figures">
        <thead className="visually-hidden">
          <tr>
            <th scope="col">{column}</th>
            <th scope="col">{label}</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part, place) => (
            <tr key={part.name}>
              <th scope="row">
                <svg className="ask-swatch" viewBox="0 0 10 10" aria-hidden="true">
                  <rect className={`ask-c${place + 1}`} width="10" height="10" rx="2" />
                </svg>
                {part.label}
              </th>
              <td className="number">{said(part.value)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{total.label}</th>
            <td className="number">{said(total.value)}</td>
          </tr>
        </tfoot>
      </table>
    </figure>
  );
}
