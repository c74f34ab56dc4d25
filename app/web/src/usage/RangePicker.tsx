import { useId, useMemo } from "react";
import { t } from "../strings";
import { dayAt, daysLater, everyZone } from "../ui/zones";
import { SPLITS, type Split } from "./query";
import { PRESETS, type Preset, type Range, wrongWith } from "./range";

const WORDS = t.usage.report;

export interface Chosen {
  range: Range;
  zone: string;
  split: Split;
}

interface RangePickerProps {
  chosen: Chosen;
  onChange: (chosen: Chosen) => void;
  /** Whether it can be split. */
  splits?: boolean;
}

/** What a report is about: which time, on whose clock, and how it is split. */
export function RangePicker({ chosen, onChange, splits = true }: RangePickerProps) {
  const id = useId();
  const zones = useMemo(everyZone, []);
  const { range, zone, split } = chosen;
  const wrong = wrongWith(range);

  function pick(preset: Preset) {
    const today = dayAt(Date.now() / 1000, zone);
    const days = preset === "custom" && range.from === "" ? { from: daysLater(today, -6), to: today } : range;
    onChange({ ...chosen, range: { ...days, preset } });
  }

  return (
    <div className="picker">
      <div className="field">
        <label htmlFor={`${id}-range`}>{WORDS.range}</label>
        <select id={`${id}-range`} value={range.preset} onChange={(event) => pick(event.target.value as Preset)}>
          {PRESETS.map((preset) => (
            <option key={preset} value={preset}>
              {WORDS.ranges[preset]}
            </option>
          ))}
        </select>
      </div>
      {range.preset === "custom" && (
        <>
          <DayField
            id={`${id}-from`}
            label={WORDS.from}
            day={range.from}
            onChange={(from) => onChange({ ...chosen, range: { ...range, from } })}
          />
          <DayField
            id={`${id}-to`}
            label={WORDS.to}
            day={range.to}
            onChange={(to) => onChange({ ...chosen, range: { ...range, to } })}
          />
        </>
      )}
      {splits && (
        <div className="field">
          <label htmlFor={`${id}-split`}>{WORDS.by}</label>
          <select
            id={`${id}-split`}
            value={split}
            onChange={(event) => onChange({ ...chosen, split: event.target.value as Split })}
          >
            {SPLITS.map((one) => (
              <option key={one} value={one}>
                {WORDS.splits[one]}
              </option>
            ))}
          </select>
        </div>
      )}
      <div className="field">
        <label htmlFor={`${id}-zone`}>{WORDS.zone}</label>
        <select id={`${id}-zone`} value={zone} onChange={(event) => onChange({ ...chosen, zone: event.target.value })}>
          {zones.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <p className="wrong" role="status">
        {wrong === "backwards" && WORDS.backwards}
        {wrong === "tooLong" && WORDS.tooLong}
      </p>
    </div>
  );
}

function DayField(props: { id: string; label: string; day: string; onChange: (day: string) => void }) {
  return (
    <div className="field">
      <label htmlFor={props.id}>{props.label}</label>
      <input id={props.id} type="date" value={props.day} onChange={(event) => props.onChange(event.target.value)} />
    </div>
  );
}
