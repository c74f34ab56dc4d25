/** How an answer was made: what was found, read and cited, what it cost and how long it took. All of it the server's. */
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { address, request } from "../api/http";
import type { Document, Usage } from "../api/types";
import { t } from "../strings";
import { callsOf, countBy, duration, money, sum, timeParts, tokenParts } from "./bill";
import { Funnel } from "./Funnel";
import { PartsBar } from "./PartsBar";
import type { Turn } from "./turn";

const count = new Intl.NumberFormat();

interface HowMadeProps {
  turn: Turn;
  usage: Usage;
  /** Whether the server keeps the answer, so that it has a receipt. */
  kept: boolean;
}

export function HowMade({ turn, usage, kept }: HowMadeProps) {
  const words = t.ask.how;
  const [open, setOpen] = useState(false);
  return (
    <details className="ask-how" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.heading}</summary>
      {open && (
        <div className="ask-how-parts">
          <Found turn={turn} />
          <Tokens usage={usage} />
          <Withheld turn={turn} />
          <Time turn={turn} />
          <Cost usage={usage} />
          <ByDocument usage={usage} turn={turn} />
          <p className="quiet small ask-break">
            {turn.ending?.model && `${words.model}: ${turn.ending.model} · `}
            {words.request}: <code>{turn.requestId}</code>
            {kept && turn.requestId !== null && (
              <>
                {" · "}
                <a
                  href={address(`v1/answers/${encodeURIComponent(turn.requestId)}/receipt`)}
                  download
                  title={words.receiptTitle}
                >
                  {words.receipt}
                </a>
              </>
            )}
          </p>
        </div>
      )}
    </details>
  );
}

function Found({ turn: { sources } }: { turn: Turn }) {
  const words = t.ask.how;
  if (sources === null) return null;
  const left = [...countBy(sources.dropped.map((one) => one.reason))].map(([reason, number]) => {
    if (reason === "budget" || reason === "duplicate" || reason === "merged") return words.dropped[reason](number);
    return words.dropped.other(number, reason);
  });
  const said = [
    ...(sources.compressed.length > 0 ? [words.shortened(sources.compressed.length)] : []),
    ...(sources.summarised.length > 0 ? [words.summarised(sources.summarised.length)] : []),
    ...left,
  ];
  return (
    <section>
      <h4>{words.funnel}</h4>
      <Funnel found={sources.retrieved} read={sources.presented.length} cited={sources.cited.length} />
      {said.length > 0 && (
        <ul className="small">
          {said.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Tokens({ usage }: { usage: Usage }) {
  const words = t.ask.how;
  const parts = tokenParts(usage).map((part) => ({ ...part, label: words.parts[part.name] }));
  const cached = usage.prompt_tokens_details.cached_tokens;
  if (parts.length === 0) {
    return (
      <section>
        <h4>{words.tokens}</h4>
        <p className="small">{words.noModel}</p>
      </section>
    );
  }
  return (
    <section>
      <h4>{words.tokens}</h4>
      <PartsBar
        parts={parts}
        label={words.tokensLabel(usage.total_tokens)}
        column={words.purpose}
        total={{ label: words.total, value: usage.total_tokens }}
        said={(value) => count.format(value)}
      />
      {cached > 0 && <p className="small">{words.cached(cached, usage.prompt_tokens)}</p>}
      <Called usage={usage} />
      <p className="quiet small">{words.tokensWhat}</p>
    </section>
  );
}

/** Which models were called, and what each read and wrote. */
function Called({ usage }: { usage: Usage }) {
  const words = t.ask.how;
  const calls = callsOf(usage);
  const wrote = calls.some(({ written }) => written > 0);
  return (
    <table className="small ask-figures" data-table="calls">
      <caption>{words.models}</caption>
      <thead>
        <tr>
          <th scope="col">{words.purpose}</th>
          <th scope="col">{words.model}</th>
          <th scope="col" className="number">
            {words.readTokens}
          </th>
          {wrote && (
            <th scope="col" className="number">
              {words.writtenTokens}
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {calls.map(({ purpose, model, read, written }) => (
          <tr key={JSON.stringify([purpose, model])}>
            <th scope="row">{words.purposes[purpose] ?? purpose}</th>
            <td className="ask-break">{model}</td>
            <td className="number">{count.format(read)}</td>
            {wrote && <td className="number">{count.format(written)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Why a language model's words are not in the answer, though they are on the bill. */
function Withheld({ turn: { ending } }: { turn: Turn }) {
  if (ending?.words?.state !== "withheld") return null;
  const { withheld } = t.ask.how;
  return <p className="small">{ending.words.reason === "not_verified" ? withheld.unverified : withheld.refused}</p>;
}

function Time({ turn: { ending } }: { turn: Turn }) {
  const words = t.ask.how;
  if (ending?.timings_ms === undefined) return null;
  const parts = timeParts(ending.timings_ms).map((part) => ({ ...part, label: words.stations[part.name] }));
  const total = ending.timings_ms.total ?? sum(parts);
  return (
    <section>
      <h4>{words.time}</h4>
      <PartsBar
        parts={parts}
        label={words.timeLabel(duration(total))}
        column={words.step}
        total={{ label: words.total, value: total }}
        said={duration}
      />
    </section>
  );
}

function Cost({ usage: { cost, num_unpriced } }: { usage: Usage }) {
  const words = t.ask.how;
  return (
    <section>
      <h4>{words.cost}</h4>
      <p>
        {cost.value === null ? words.noPrice : <strong>{money({ value: cost.value, currency: cost.currency })}</strong>}
      </p>
      {cost.value !== null && num_unpriced > 0 && <p className="small">{words.unpriced(num_unpriced)}</p>}
    </section>
  );
}

function ByDocument({ usage, turn }: { usage: Usage; turn: Turn }) {
  const words = t.ask.how;
  const shares = Object.entries(usage.by_document).sort(([, one], [, other]) => other - one);
  const cited = new Map(turn.citations.map((citation) => [citation.document_id, citation.filename]));
  const unnamed = shares.map(([id]) => id).filter((id) => !cited.has(id));
  // Only cited documents come with their names.
  const documents = useQueries({
    queries: unnamed.map((id) => ({
      queryKey: ["documents", id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        request<Document>(`v1/documents/${encodeURIComponent(id)}`, { signal }),
    })),
  });
  const names = new Map(documents.flatMap(({ data }) => (data === undefined ? [] : [[data.id, data.filename]])));
  if (shares.length === 0) return null;
  return (
    <section>
      <h4>{words.byDocument}</h4>
      <table className="small ask-figures">
        <tbody>
          {shares.map(([id, tokens]) => (
            <tr key={id}>
              <th scope="row">
                <a href={`#/documents/${encodeURIComponent(id)}`}>{cited.get(id) ?? names.get(id) ?? id}</a>
              </th>
              <td className="number">{count.format(tokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
