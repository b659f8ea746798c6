import type { Answer, AskRequest, Change, Collection, DocumentInfo, Passage, Run, Turn } from "./types.js";

export type * from "./types.js";

/** An event of an answer. Other kinds may be added: ignore those you do not know. */
export type Event = { id: string } & (
  | { kind: "text"; data: { text: string } }
  | { kind: "done"; data: Answer }
  | { kind: "retrieved" | "judged" | "draft" | "cited" | "quoted" | "unanswered"; data: any }
  | { kind: "usage" | "warning" | "queued" | "incomplete" | "fallback"; data: any }
);

type More = Omit<AskRequest, "question" | "run"> & { signal?: AbortSignal };

/** The answer to a question of a batch, or its error. */
export type Outcome = { run?: string; answer?: Answer; error?: { code: string; detail: string }; retry_after_ms?: number };

/** Metadata for filters. An empty label restores the file's value. */
export type Labels = { tags?: string[]; author?: string; date?: string; language?: string };

export class IbidError extends Error {
  /** 0 if there was no reply. */
  status: number;
  /** Stable, for programs: "unreachable", "too_fast", "bad_key", … */
  code: string;
  /** The id of the request in the server's log. */
  request: string;
  /** In seconds, if the server sent it. */
  retryAfter?: number;
}

export function turns(question: string, answer: Pick<Answer, "text">): Turn[];

export class Ibid {
  constructor(url?: string, options?: { key?: string; headers?: Record<string, string>; fetch?: typeof globalThis.fetch });
  readonly url: string;
  ask(question: string, more?: More): Promise<Answer>;
  stream(question: string, more?: More): AsyncGenerator<Event>;
  follow(run: string, options?: { after?: string; signal?: AbortSignal }): AsyncGenerator<Event>;
  batch(questions: (string | AskRequest)[], more?: { signal?: AbortSignal }): Promise<Outcome[]>;
  search(question: string, more?: More): Promise<Passage[]>;
  summarize(what: More & { document?: string; max_words?: number }): Promise<Answer>;
  cite(text: string, documents: unknown[], more?: Record<string, unknown>): Promise<Pick<Answer, "text" | "list"> & { sources: object[] }>;
  documents(page?: number): AsyncGenerator<DocumentInfo>;
  upload(name: string, data: string | Blob | Uint8Array, options?: { collection?: string } & Labels): Promise<Change>;
  label(document: string, labels: Labels): Promise<Change>;
  delete(document: string): Promise<void>;
  collections(): Promise<Collection[]>;
  run(id: string): Promise<Run>;
  rate(run: string, rating: 1 | -1, comment?: string): Promise<void>;
}
