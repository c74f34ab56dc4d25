/** Short messages that come and go: what was done, and what can be undone. */
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";

interface Notice {
  id: number;
  text: string;
  action: { label: string; act: () => void } | null;
}

type Say = (text: string, options?: { action?: Notice["action"]; seconds?: number; onGone?: () => void }) => () => void;

const NoticeContext = createContext<Say | null>(null);

/** A function that shows a message for some seconds (6 unless told) and returns what takes it away. */
export function useNotices(): Say {
  const say = useContext(NoticeContext);
  if (say === null) throw new Error("notices are shown inside of their provider");
  return say;
}

export function NoticeProvider({ children }: { children: ReactNode }) {
  const [notices, setNotices] = useState<Notice[]>([]);
  const next = useRef(0);
  const say = useCallback<Say>((text, { action = null, seconds = 6, onGone } = {}) => {
    const id = next.current++;
    const remove = () => setNotices((shown) => shown.filter((notice) => notice.id !== id));
    setNotices((shown) => [...shown, { id, text, action }]);
    const timer = window.setTimeout(() => {
      remove();
      onGone?.();
    }, seconds * 1000);
    return () => {
      window.clearTimeout(timer);
      remove();
    };
  }, []);
  const shown = useMemo(
    () =>
      notices.map((notice) => (
        <div key={notice.id} className="notice">
          <span>{notice.text}</span>
          {notice.action !== null && (
            <button type="button" className="plain" onClick={notice.action.act}>
              {notice.action.label}
            </button>
          )}
        </div>
      )),
    [notices],
  );
  return (
    <NoticeContext value={say}>
      {children}
      <div className="notices" role="status" aria-live="polite">
        {shown}
      </div>
    </NoticeContext>
  );
}
