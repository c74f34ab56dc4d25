/** A chart the size of a word: bars without axes. Its numbers are in the chart that the figure opens. */
const WIDTH = 120;
const HEIGHT = 28;

export function Spark({ values }: { values: readonly (number | null)[] }) {
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, values.length);
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {values.map((value, place) => {
        const height = most > 0 ? Math.max(value ? 1 : 0, ((value ?? 0) / most) * HEIGHT) : 0;
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place
            key={place}
            x={place * step + step * 0.12}
            y={HEIGHT - height}
            width={step * 0.76}
            height={height}
          />
        );
      })}
    </svg>
  );
}
