/** What a server of ours answers. */
export interface Answer {
  readonly status: number;
  /** Media type. */
  readonly type: string;
  readonly body: string;
}

/** Answers by path: `/healthz`. The search parameters are the request's; the method does not matter. */
export type Routes = Readonly<Record<string, (search: URLSearchParams) => Answer | Promise<Answer>>>;

/** Plain text with a line feed at its end only where `text` has one. */
export function textAnswer(text: string, status = 200): Answer {
  return { status, type: "text/plain; charset=utf-8", body: text };
}

/** A value as indented JSON. */
export function jsonAnswer(value: unknown, status = 200): Answer {
  return { status, type: "application/json", body: `${JSON.stringify(value, null, 2)}\n` };
}
