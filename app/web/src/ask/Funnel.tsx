/** Passages on their way: found, read by the model, cited. */
import { t } from "../strings";

const WIDTH = 300;
const HEIGHT = 64;
const LEAST = 3;
const count = new Intl.NumberFormat();

export function Funnel({ found, read, cited }: { found: number; read: number; cited: number }) {
  const words = t.ask.how;
  const stations = [
    { name: words.found, value: found },
    { name: words.read, value: read },
    { name: words.cited, value: cited },
  ];
  const most = Math.max(1, ...stations.map((station) => station.value));
  const half = (value: number) => (value === 0 ? 0.5 : Math.max(LEAST, (value / most) * HEIGHT) / 2);
  const width = WIDTH / stations.length;
  return (
    <figure className="ask-funnel">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={words.funnelLabel(found, read, cited)}
      >
        {stations.map(({ name, value }, place) => {
          const next = stations[place + 1]?.value ?? value;
          const [left, right, middle] = [place * width, (place + 1) * width, HEIGHT / 2];
          const flat = left + width * 0.6;
          const points = [
            [left, middle - half(value)],
            [flat, middle - half(value)],
            [right, middle - half(next)],
            [right, middle + half(next)],
            [flat, middle + half(value)],
            [left, middle + half(value)],
          ];
          return (
            <polygon
              key={name}
              className={`ask-c${place + 1}`}
              points={points.map((point) => point.join(",")).join(" ")}
            />
          );
        })}
      </svg>
      <figcaption aria-hidden="true">
        {stations.map(({ name, value }) => (
          <span key={name}>
            <strong>{count.format(value)}</strong> {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
