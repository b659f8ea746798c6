// Generated from openapi.json: go test ./web -run TestClientTypes -update
export interface Answer {
  answered: boolean; citations: Citation[]; closest: Closest[]; drafts: Record<string, any>[];
  fallback?: string; html?: string; incomplete: boolean; indexing: Record<string, any>;
  judged: Judged[]; list: string; markdown?: string; nearest: Passage[];
  places: Record<string, any>[]; plain?: boolean; reason?: string; searched?: string;
  sources: Source[]; steps: Record<string, any>[]; text: string; unknown_addresses?: string[];
  unsupported: Record<string, any>[]; usage: Record<string, any>; verified: Record<string, any>[];
  warnings: string[];
}
export interface AskRequest {
  collection?: string; conversation?: string; filter?: Record<string, any>; history?: Turn[];
  name?: string; question?: string; record?: boolean; run?: string;
  strategy?: "auto" | "refine" | "stuff" | "map-reduce" | "map-rerank" | "extract"; style?: string;
  top_k?: number; user?: string;
}
export interface Change {
  action: "added" | "updated" | "unchanged" | "renamed" | "removed" | "skipped" | "failed";
  chunks: number; copy_of?: string; document: string; from?: string; pages: number; path: string;
  reason?: string; root: string; url?: string;
}
export interface Citation {
  by: "written" | "found"; digest: string; document: string; end: number; end_chars?: number;
  heading?: string; link?: string; number: number; original?: string; page?: number;
  passage: string; quote: string; start: number; start_chars?: number; support: number;
  text_end: number; text_end_chars?: number; text_start: number; text_start_chars?: number;
  verdict: "quoted" | "supported" | "weak";
}
export interface Closest {
  document: string; end: number; end_chars?: number; heading?: string; link?: string;
  marks: Record<string, any>[]; page?: number; start: number; start_chars?: number; text: string;
  title: string;
}
export interface Collection {
  bytes: number; chunks: number; collection: string; documents: number;
  roots: Record<string, any>[]; uploads: boolean;
}
export interface DocumentInfo {
  bytes: number; chunks: number; collection: string; digest: string; document: string;
  format: string; meta?: Record<string, any>; pages: number; path: string; root: string;
  title: string;
}
export interface Judged {
  by: string; calls: number; chance: number; document: string; heading?: string; page?: number;
  passage: string; reason: string; scores: Record<string, any>; title: string; tokens: number;
  verdict: "relevant" | "irrelevant" | "unparsable" | "error"; wider?: boolean;
}
export interface Passage {
  also_in?: string[]; anchor?: string; digest: string; document: string; end: number;
  end_chars?: number; format: string; heading?: string; id: string; line?: number; ordinal: number;
  page?: number; path: string; root: string; score: number; scores: Record<string, any>;
  start: number; start_chars?: number; text: string; title: string; tokens: number;
}
export interface Run {
  answer?: Answer; ended?: string; error?: Record<string, any>; events: string; html?: string;
  id: string; kind: string; markdown?: string; question?: string; request: any; resumable: boolean;
  shared: boolean; sources?: "unchanged" | "moved" | "changed" | "gone"; started: string;
  state: string; url: string;
}
export interface Source {
  also_in?: string[]; document: string; link?: string; now?: string; number: number;
  original?: string; passages: SourcePassage[]; state?: string; title: string;
}
export interface SourcePassage {
  end: number; end_chars?: number; heading?: string; id: string; link?: string; original?: string;
  page?: number; quote: string; start: number; start_chars?: number;
}
export interface Turn {
  content?: string; role: "user" | "assistant";
}
