import { useMutation, useQueryClient } from "@tanstack/react-query";
import { send } from "../api/http";
import type { Feedback, WholeConversation } from "../api/types";
import { useNotices } from "../ui/notices";
import { wordsOf } from "../ui/ProblemNote";
import { withFeedback } from "./feedback";

/** Says something of an answer, or takes it back with null. It shows at once, and no more where the server refuses. */
export function useFeedback(conversation: string, requestId: string) {
  const queries = useQueryClient();
  const say = useNotices();
  const kept = ["conversations", conversation];
  const mutationKey = ["feedback", conversation];
  const show = (said: Feedback | null) =>
    queries.setQueryData<WholeConversation>(kept, (before) => before && withFeedback(before, requestId, said));
  return useMutation({
    mutationKey,
    // One after the other, so that what was pressed last holds.
    scope: { id: `feedback ${requestId}` },
    mutationFn: (said: Feedback | null) => {
      const path = `v1/requests/${encodeURIComponent(requestId)}/feedback`;
      return said === null ? send(path, { method: "DELETE" }) : send(path, { method: "POST", body: said });
    },
    onMutate: async (said) => {
      await queries.cancelQueries({ queryKey: kept });
      const before = queries.getQueryData<WholeConversation>(kept);
      show(said);
      return before?.data.find((turn) => turn.request_id === requestId)?.feedback ?? null;
    },
    onError: (error, _said, before) => {
      show(before ?? null);
      say(wordsOf(error));
    },
    onSettled: async () => {
      // The last one that is under way asks what holds; an earlier answer would show for a moment what does not.
      if (queries.isMutating({ mutationKey }) > 1) return;
      await queries.invalidateQueries({ queryKey: kept, exact: true });
      await queries.invalidateQueries({ queryKey: ["feedback"] });
    },
  });
}
