import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { request } from "../api/http";
import type { Generators, ServerTest } from "../api/types";
import { t } from "../strings";
import { CopyButton } from "../ui/CopyButton";
import { ProblemNote } from "../ui/ProblemNote";
import { AddModel } from "./AddModel";
import { Field } from "./Form";
import { refusalOf } from "./fields";
import { gigabytes } from "./gigabytes";
import { Section } from "./Section";
import { Table } from "./Table";

const WORDS = t.admin.models.choice;
const FIELDS = ["url", "model", "key"] as const;

/** Which generators are here, how a larger one is switched to, and whether a remote server speaks. It changes nothing. */
export function ModelChoice() {
  const found = useQuery({
    queryKey: ["generators"],
    queryFn: ({ signal }) => request<Generators>("v1/admin/models", { signal }),
  });
  return (
    <>
      <Section title={WORDS.title} lead={WORDS.lead}>
        {found.isPending && <p className="quiet">{t.loading}</p>}
        {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
        {found.isSuccess && <Choice generators={found.data} />}
      </Section>
      {found.isSuccess && <AddModel proposed={found.data.larger} />}
      <RemoteServer />
    </>
  );
}

function Choice({ generators }: { generators: Generators }) {
  const { installed, gpu, total_bytes, available_bytes, larger, larger_parameters } = generators;
  return (
    <>
      <p>{WORDS.memory(gpu, gigabytes(available_bytes), gigabytes(total_bytes))}</p>
      {installed.length > 0 && (
        <Table
          label={WORDS.installed}
          items={installed}
          keyOf={({ setting }) => setting}
          columns={[
            { header: WORDS.model, cell: (one) => `${one.setting}${one.default ? ` (${WORDS.default})` : ""}` },
            { header: WORDS.size, number: true, cell: (one) => gigabytes(one.bytes) },
            { header: WORDS.needs, number: true, cell: (one) => WORDS.about(gigabytes(one.needed_bytes)) },
            {
              header: WORDS.state,
              cell: (one) => (
                <span className={one.in_use ? "badge good" : one.fits ? "badge" : "badge warn"}>
                  {one.in_use ? WORDS.inUse : one.fits ? WORDS.fits : WORDS.tooLarge}
                </span>
              ),
            },
          ]}
        />
      )}
      <h3>{WORDS.how}</h3>
      {larger === null || larger_parameters == null ? (
        <p>{WORDS.nothingFits}</p>
      ) : (
        <>
          <p>{WORDS.fitting(larger, String(larger_parameters))}</p>
          <ol className="steps">
            <li>
              {WORDS.fetch} <Command text={`footnote models add ${larger}`} />
            </li>
            <li>
              {WORDS.set} <Command text={`FOOTNOTE_GENERATOR=${larger}`} />
            </li>
            <li>
              {WORDS.restart} <Command text="footnote serve" />
            </li>
          </ol>
          <p className="quiet small">{WORDS.back}</p>
        </>
      )}
    </>
  );
}

function Command({ text }: { text: string }) {
  return (
    <span className="row command">
      <code>{text}</code>
      <CopyButton className="plain small" text={text} label={WORDS.copy} />
    </span>
  );
}

/** Asks a server of models whether it speaks; what it answers stays here. */
function RemoteServer() {
  const [url, setUrl] = useState("");
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const test = useMutation({
    mutationFn: () =>
      request<ServerTest>("v1/admin/models/test-server", {
        method: "POST",
        body: { url: url.trim(), model: model.trim() || null, key: key || null },
      }),
  });
  const wrong = refusalOf(test.error, FIELDS);
  const errorOf = (field: string) => (wrong?.field === field ? wrong.text : null);

  function submit(event: FormEvent) {
    event.preventDefault();
    test.mutate();
  }

  return (
    <Section title={WORDS.remote} lead={WORDS.remoteLead}>
      <form className="stack server-test" onSubmit={submit}>
        <Field label={WORDS.url} hint={WORDS.urlHint} error={errorOf("url")}>
          {(input) => (
            <input
              {...input}
              required
              inputMode="url"
              autoComplete="off"
              maxLength={2048}
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        <div className="pair">
          <Field label={WORDS.remoteModel} hint={WORDS.remoteModelHint} error={errorOf("model")}>
            {(input) => (
              <input
                {...input}
                autoComplete="off"
                maxLength={200}
                value={model}
                onChange={(event) => setModel(event.target.value)}
              />
            )}
          </Field>
          <Field label={WORDS.key} hint={WORDS.keyHint} error={errorOf("key")}>
            {(input) => (
              <input
                {...input}
                type="password"
                autoComplete="off"
                maxLength={1024}
                value={key}
                onChange={(event) => setKey(event.target.value)}
              />
            )}
          </Field>
        </div>
        <div className="row">
          <button type="submit" disabled={test.isPending}>
            {test.isPending ? WORDS.testing : WORDS.test}
          </button>
        </div>
      </form>
      <div role="status">{test.isSuccess && <Result found={test.data} />}</div>
      {test.isError && wrong?.field == null && <ProblemNote problem={test.error} />}
    </Section>
  );
}

function Result({ found }: { found: ServerTest }) {
  const good = found.speaks && found.completes !== false;
  const settings = Object.entries(found.settings)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");
  return (
    <div className="server-result">
      <p>
        <span className={good ? "badge good" : "badge bad"}>{good ? WORDS.speaks : WORDS.doesNot}</span> {found.detail}
      </p>
      {found.models.length > 0 && (
        <p>
          {WORDS.lists} {found.models.map(({ id }) => id).join(", ")}
        </p>
      )}
      {settings !== "" && (
        <>
          <p>{WORDS.write}</p>
          <pre className="settings">{settings}</pre>
          <CopyButton className="small" text={settings} label={WORDS.copySettings} />
        </>
      )}
    </div>
  );
}
