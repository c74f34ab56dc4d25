import { type RefObject, useLayoutEffect, useMemo, useRef } from "react";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { parted } from "./codePoints";
import { MarkedText } from "./MarkedText";
import type { Span } from "./place";
import { useText } from "./queries";
import { StructuredText } from "./StructuredText";
import { sliceOf } from "./slices";
import { joinedBlocks } from "./structure";
import { type Find, spanOf } from "./useFind";

interface TextViewProps {
  id: string;
  version: number | null;
  span: Span | null;
  /** Sentences of the span that matter most; all of it does where there are none. */
  marks: readonly Span[];
  /** Whether headings, lists and tables are shown as such: of formats whose own marks are not in the text. */
  withStructure?: boolean;
  /** What is searched for in it; its places come before the passage. */
  find?: Find;
}

/** The canonical text, with the passage marked and in sight. */
export function TextView({ id, version, span, marks, withStructure = false, find }: TextViewProps) {
  const current = find?.current ?? null;
  const hit = current === null ? null : spanOf(current);
  const text = useText(id, version, hit === null ? span : sliceOf(hit), withStructure);
  const room = useRef<HTMLElement>(null);
  const slices = text.data?.pages ?? [];
  const [first] = slices;
  const last = slices.at(-1);
  const shown = first !== undefined;
  const blocks = useMemo(() => joinedBlocks(text.data?.pages.map((slice) => slice.blocks ?? []) ?? []), [text.data]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another place is brought into sight, when its text is there
  useLayoutEffect(() => {
    const place = room.current?.querySelector(hit === null ? "mark" : ".text-around mark");
    if (shown) place?.scrollIntoView({ block: "center" });
  }, [shown, first?.start, hit?.start]);

  useKeptPlace(room, first?.start);

  if (text.isPending) return <p className="centred quiet">{t.loading}</p>;
  if (first === undefined || last === undefined) {
    return <ProblemNote problem={text.error} onRetry={() => void text.refetch()} />;
  }
  if (last.total === 0) return <p className="centred quiet">{t.viewer.noText}</p>;
  const whole = slices.map((slice) => slice.text).join("");
  const inside = span !== null && parted(whole, span.start - first.start, span.end - first.start)[1] !== "";
  const around = inside && marks.length > 0 ? span : null;
  const hits = (find?.hits ?? []).map(spanOf).filter(({ start, end }) => end > first.start && start < last.end);
  const own = !inside || marks.length > 0 ? marks : [span];
  const marked = { marks: hit !== null ? hits : own, around: hit ?? around };
  return (
    <>
      {hit === null && span !== null && !inside && <p className="problem">{t.viewer.outside}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section ref={room} className="text-view" tabIndex={0} aria-label={t.viewer.asText}>
        <More wanted={text.hasPreviousPage} busy={text.isFetchingPreviousPage} onMore={() => text.fetchPreviousPage()}>
          {t.viewer.above}
        </More>
        <div
          className={`text-body${blocks.length > 0 ? " structured" : ""}${hit === null ? "" : " text-found"}`}
          dir="auto"
        >
          {blocks.length > 0 ? (
            <StructuredText text={whole} start={first.start} blocks={blocks} {...marked} />
          ) : (
            <MarkedText text={whole} start={first.start} {...marked} />
          )}
        </div>
        <More wanted={text.hasNextPage} busy={text.isFetchingNextPage} onMore={() => text.fetchNextPage()}>
          {t.viewer.below}
        </More>
        {text.isError && <ProblemNote problem={text.error} />}
        {!text.hasNextPage && <p className="centred quiet small">{t.viewer.end}</p>}
      </section>
    </>
  );
}

/** Keeps what is read where it is when text is put above it, which begins at another `start` then. */
function useKeptPlace(room: RefObject<HTMLElement | null>, start: number | undefined) {
  const before = useRef<{ start: number; height: number } | null>(null);
  useLayoutEffect(() => {
    const { current } = room;
    if (current === null || start === undefined) return;
    if (before.current !== null && start < before.current.start) {
      current.scrollTop += current.scrollHeight - before.current.height;
    }
    before.current = { start, height: current.scrollHeight };
  });
}

interface MoreProps {
  wanted: boolean;
  busy: boolean;
  onMore: () => Promise<unknown>;
  children: string;
}

function More({ wanted, busy, onMore, children }: MoreProps) {
  if (!wanted) return null;
  return (
    <p className="text-more">
      <button type="button" disabled={busy} onClick={() => void onMore()}>
        {busy ? t.loading : children}
      </button>
    </p>
  );
}
