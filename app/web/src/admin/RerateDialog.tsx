import { useState } from "react";
import { request } from "../api/http";
import type { Rerating } from "../api/types";
import { t } from "../strings";
import { moneyText, unitsOf } from "../ui/money";
import { countText } from "../ui/numbers";
import { dayAt, dayStart, daysLater, ownZone } from "../ui/zones";
import { Field, FormDialog } from "./Form";
import { Table } from "./Table";

const WORDS = t.admin.rerating;
const FIELDS = ["start_time", "end_time", "reason"] as const;

/** Earlier calls at the prices known now: first what would change, and then, when somebody has seen it, the change. */
export function RerateDialog({ onDone, onClose }: { onDone: (text: string) => void; onClose: () => void }) {
  const zone = ownZone();
  const today = dayAt(Date.now() / 1000, zone);
  const [from, setFrom] = useState(() => daysLater(today, -30));
  const [to, setTo] = useState(today);
  const [reason, setReason] = useState("");
  const [looked, setLooked] = useState<Rerating | null>(null);

  /** What was seen counts for what it was asked about. */
  function change(set: (value: string) => void) {
    return (value: string) => {
      set(value);
      setLooked(null);
    };
  }
  async function submit() {
    const body = {
      start_time: dayStart(from, zone),
      end_time: dayStart(daysLater(to, 1), zone),
      reason: reason.trim(),
      dry_run: looked === null,
    };
    const found = await request<Rerating>("v1/admin/prices/rerate", { method: "POST", body });
    if (found.dry_run) setLooked(found);
    else onDone(WORDS.did(countText(found.num_adjusted)));
  }

  const ready = looked !== null && looked.num_adjusted > 0;
  return (
    <FormDialog
      title={WORDS.title}
      submit={ready ? WORDS.apply : WORDS.look}
      fields={FIELDS}
      danger={ready}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <p className="quiet">{WORDS.lead}</p>
          <div className="pair">
            <Field label={WORDS.from} error={errorOf("start_time")}>
              {(input) => <DayInput input={input} value={from} onChange={change(setFrom)} />}
            </Field>
            <Field label={WORDS.to} error={errorOf("end_time")}>
              {(input) => <DayInput input={input} value={to} onChange={change(setTo)} />}
            </Field>
          </div>
          <Field label={WORDS.reason} hint={WORDS.reasonHint} error={errorOf("reason")}>
            {(input) => (
              <input
                {...input}
                required
                maxLength={500}
                value={reason}
                onChange={(event) => setReason(event.target.value)}
              />
            )}
          </Field>
          <div role="status">{looked !== null && <Outlook looked={looked} />}</div>
        </>
      )}
    </FormDialog>
  );
}

function DayInput(props: { input: object; value: string; onChange: (day: string) => void }) {
  return (
    <input
      {...props.input}
      type="date"
      required
      value={props.value}
      onChange={(event) => props.onChange(event.target.value)}
    />
  );
}

function Outlook({ looked }: { looked: Rerating }) {
  const { value, currency } = looked.difference;
  if (looked.num_adjusted === 0) return <p>{WORDS.nothing}</p>;
  return (
    <>
      <p>
        {WORDS.would(countText(looked.num_calls), countText(looked.num_adjusted))} {WORDS.difference}:{" "}
        <b>{moneyText(unitsOf(value ?? "0"), currency)}</b>
      </p>
      <Table
        label={WORDS.title}
        items={looked.models}
        keyOf={({ model }) => model}
        columns={[
          { header: WORDS.model, cell: ({ model }) => model },
          { header: WORDS.adjusted, number: true, cell: (one) => countText(one.num_adjusted) },
          { header: WORDS.newly, number: true, cell: (one) => countText(one.num_newly_priced) },
          { header: WORDS.unpriced, number: true, cell: (one) => countText(one.num_unpriced) },
          {
            header: WORDS.difference,
            number: true,
            cell: (one) => moneyText(unitsOf(one.difference.value ?? "0"), one.difference.currency),
          },
        ]}
      />
    </>
  );
}
