/** Names for the bodies of the HTTP contract; `schema.d.ts` is made from the server's own description (npm run types). */
import type { Block } from "../viewer/structure";
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Session = Schemas["SessionBody"];
export type SignedOut = Schemas["SignedOut"];
export type AskRequest = Schemas["AskRequest"];
export type Answer = Schemas["AnswerBody"];
/** Quotes that are shown until a model has worded the answer. */
export type QuotesEvent = Schemas["QuotesEventBody"];
/** The last event of an answer. */
export type Done = Schemas["DoneBody"];
/** Why a question was not answered. */
export type Reason = Schemas["Reason"];
/** Words that both wordings of a passage have, or only one. */
export type Change = { kind: "equal" | "removed" | "added"; text: string };
/** What became of the passage of a kept footnote. One of an answer that has just come tells `current_version` alone,
 * where a newer version came while it was written. */
export type Aged = {
  state?: "current" | "moved" | "altered" | "gone" | null;
  current_version?: number | null;
  current_start_char?: number | null;
  current_end_char?: number | null;
  current_page_start?: number | null;
  current_page_end?: number | null;
  changes?: readonly Change[];
};
/** A footnote. Those of older answers do not tell how likely their passage answers, nor the section, sheet or cell it
 * stands in. */
export type Citation = Omit<Schemas["CitationBody"], "answers" | "section" | "sheet" | "cell" | keyof Aged> & {
  answers?: number | null;
  section?: string | null;
  sheet?: string | null;
  cell?: string | null;
} & Aged;
/** A part of an answer's text, which says what it is; offsets in the answer, in code points. */
export type Part = Answer["parts"][number];
export type Sources = Schemas["SourcesBody"];
export type SourcesEvent = Schemas["SourcesEventBody"];
/** A passage that is read for an answer, as it is told before the answer is. */
export type SourcePassage = Schemas["SourcePassageBody"];
export type Usage = Schemas["UsageBody"];
export type Document = Schemas["DocumentBody"];
export type Overview = Schemas["DocumentOverviewBody"];
export type Collection = Schemas["CollectionBody"];

/** A list as every route gives it: `next_cursor` asks for what follows. */
export interface Page<Item> {
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

export type DocumentStatus = Schemas["DocumentStatus"];
export type DocumentVersion = Schemas["VersionBody"];
/** A question that is asked again when its documents change. */
export type Watch = Schemas["WatchBody"];
export type WatchEvent = Schemas["WatchEventBody"];
export type WatchDifference = Schemas["WatchDifferenceBody"];
export type WatchedAnswer = Schemas["WatchedAnswerBody"];
/** What the server keeps of a footnote of a watched question. */
export type Cited = Pick<
  Citation,
  "document_id" | "version" | "filename" | "start_char" | "end_char" | "page_start" | "cited_text"
>;
/** The same questions, asked of many documents; without its rows. */
export type AnswerTable = Schemas["AnswerTableBody"];
/** A table with a page of its rows. */
export type AnswerTablePage = Schemas["AnswerTablePage"];
export type TableRow = Schemas["TableRowBody"];
export type TableCell = Schemas["TableCellBody"];
export type TableAnswer = Schemas["TableAnswerBody"];
/** What changed between two versions, by pages. */
export type Comparison = Schemas["ComparisonBody"];
/** A change between two versions. */
export type ComparedChange = Comparison["data"][number];
export type Archive = Schemas["ArchiveBody"];
/** A document's or a collection's own fields. */
export type Metadata = Document["metadata"];
export type Turn = Schemas["TurnBody"];
export type Conversation = Schemas["ConversationBody"];
export type Interrupted = Schemas["InterruptedBody"];
export type WholeConversation = Schemas["WholeConversationBody"];
/** What the reader said of an answer. */
export type Feedback = Schemas["OwnFeedbackBody"];
export type Hit = Schemas["HitBody"];
export type SearchResponse = Schemas["SearchResponse"];

/** Usage and administration. */
export type OwnUsage = Schemas["OwnUsage"];
export type OwnPeriod = Schemas["OwnPeriod"];
export type OwnBudget = Schemas["OwnBudget"];
export type Calls = Schemas["UsageResult"];
export type Completions = Schemas["CompletionsResult"];
export type Embeddings = Schemas["EmbeddingsResult"];
export type Reranks = Schemas["RerankResult"];
export type Judgements = Schemas["JudgeResult"];
export type Costs = Schemas["CostsResult"];
export type DocumentUsage = Schemas["DocumentResult"];
export type DocumentsPage = Schemas["DocumentsPage"];
export type LedgerReconciliation = Schemas["ReconciliationBody"];
export type Readiness = Schemas["Readiness"];
export type Key = Schemas["KeyBody"];
export type ListedKey = Schemas["ListedKeyBody"];
export type NewKey = Schemas["NewKey"];
export type KeyWithSecret = Schemas["NewKeyBody"];
export type Role = Schemas["Role"];
export type Invitation = Schemas["InvitationBody"];
export type InvitationWithLink = Schemas["CreatedInvitationBody"];
export type InvitationPreview = Schemas["InvitationPreview"];
export type AcceptedInvitation = Schemas["AcceptedInvitationBody"];
export type SessionState = Schemas["SessionState"];
export type User = Schemas["UserBody"];
export type Tenant = Schemas["TenantBody"];
export type Price = Schemas["PriceBody"];
export type Rerating = Schemas["ReratingBody"];
export type Budget = Schemas["BudgetBody"];
export type BudgetTerms = Schemas["Terms"];
export type Limits = Schemas["LimitsBody"];
export type NewLimits = Schemas["NewLimits"];
export type Model = Schemas["ModelBody"];
export type Generators = Schemas["GeneratorsBody"];
export type ModelAddition = Schemas["AdditionBody"];
export type ServerTest = Schemas["ServerTestBody"];
export type Generation = Schemas["GenerationBody"];
export type Reindexing = Schemas["ReindexBody"];
export type AuditEvent = Schemas["AuditBody"];
export type ListedFeedback = Schemas["ListedFeedbackBody"];
export type Findings = Schemas["FindingsBody"];

export type OverviewBody = Schemas["OverviewBody"];
export type OverviewResult = Schemas["OverviewResult"];
export type UnansweredBody = Schemas["UnansweredBody"];
export type UnansweredTopic = Schemas["UnansweredTopic"];
export type UnusedBody = Schemas["UnusedBody"];
export type UnusedDocument = Schemas["UnusedDocument"];
export type ExpensiveBody = Schemas["ExpensiveBody"];
export type ExpensiveQuestion = Schemas["ExpensiveQuestion"];
export type PeopleBody = Schemas["PeopleBody"];
export type OverviewPerson = Schemas["OverviewPerson"];

export type Boxes = Schemas["BoxesBody"];
/** Where a phrase stands in a document. */
export type Occurrence = Schemas["OccurrenceBody"];
export type Occurrences = Schemas["OccurrencesBody"];

/** Characters `[start, end)` of a version's canonical text; offsets count code points. */
export interface Content {
  document_id: string;
  version: number;
  start: number;
  end: number;
  total: number;
  text: string;
  /** What its pieces are, where that was asked for. */
  blocks: Block[] | null;
}

/** A report's page of buckets, oldest first; `next_page` asks for what follows. */
export interface ReportPage<Result> {
  data: { start_time: number; end_time: number; start_local: string; results: Result[] }[];
  has_more: boolean;
  next_page: string | null;
  as_of: number;
  final: boolean;
  tz: string;
}
