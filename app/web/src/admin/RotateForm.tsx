import { useState } from "react";
import { request } from "../api/http";
import type { Key, KeyWithSecret } from "../api/types";
import { t } from "../strings";
import { Choice, optionsOf } from "./Choice";
import { Field, FormDialog } from "./Form";

const WORDS = t.admin.keys;
const SECONDS = { none: 0, hour: 3600, day: 86_400, week: 7 * 86_400 } as const;

interface RotateFormProps {
  changing: Key;
  onDone: (key: KeyWithSecret) => Promise<void>;
  onClose: () => void;
}

/** Another secret for a key, and for how long the old one works beside it. */
export function RotateForm({ changing, onDone, onClose }: RotateFormProps) {
  const [overlap, setOverlap] = useState<keyof typeof SECONDS>("hour");
  async function submit() {
    const body = { overlap_s: SECONDS[overlap] };
    await onDone(await request<KeyWithSecret>(`v1/admin/keys/${changing.id}/rotate`, { method: "POST", body }));
  }
  return (
    <FormDialog
      title={WORDS.rotateTitle(changing.name)}
      submit={WORDS.rotate}
      fields={["overlap_s"]}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <p>{WORDS.rotateLead}</p>
          <Field label={WORDS.overlap} error={errorOf("overlap_s")}>
            {(input) => (
              <Choice input={input} value={overlap} options={optionsOf(WORDS.overlaps)} onChange={setOverlap} />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  );
}
