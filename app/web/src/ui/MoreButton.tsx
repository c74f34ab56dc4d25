/** The button below a list that shows the next page of it; nothing where the list has ended. */
import { t } from "../strings";

interface MoreButtonProps {
  /** The list, as TanStack Query gives it page by page. */
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  className?: string;
}

export function MoreButton({ list, className }: MoreButtonProps) {
  if (!list.hasNextPage) return null;
  return (
    <button
      type="button"
      className={className}
      disabled={list.isFetchingNextPage}
      onClick={() => void list.fetchNextPage()}
    >
      {t.more}
    </button>
  );
}
