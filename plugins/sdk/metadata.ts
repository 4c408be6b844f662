import { CloudError } from "./cloud.ts";

/** One question to a metadata service. */
export interface MetadataRequest {
  /** Plain http: the service is on the host's own link. */
  readonly url: string;
  readonly method?: "GET" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  /** What to do when it does not answer. */
  readonly fix: string;
  readonly signal: AbortSignal;
  /** How often it is asked at most; 3 when nothing is said. */
  readonly tries?: number;
}

/** An answer, of any status. */
export interface MetadataAnswer {
  readonly status: number;
  readonly body: string;
}

/** A metadata service answers within milliseconds; a packet may get lost. */
const TIMEOUT_MS = 2_000;
const TRIES = 3;
const PAUSE_MS = 300;
const LARGEST_ANSWER = 65_536;

/**
 * Asks a metadata service, past any proxy, up to `tries` times: a service that is starting answers 429 or 5xx. Any other
 * status is an answer. Rejects with CloudError `metadata` when none comes.
 */
export async function askMetadata(question: MetadataRequest): Promise<MetadataAnswer> {
  const { url, method = "GET", fix, signal, tries = TRIES } = question;
  let failure = "";
  for (let attempt = 0; attempt < tries && !signal.aborted; attempt++) {
    if (attempt > 0) await Bun.sleep(PAUSE_MS * attempt);
    try {
      const answer = await ask(question);
      if (answer.status !== 429 && answer.status < 500) return answer;
      failure = `status ${answer.status}`;
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
  }
  throw new CloudError("metadata", `${method} ${url}`, failure || "given up, flanneld stops", fix);
}

/** As {@link askMetadata}; everything but 200 with a text is a failure. The text is trimmed. */
export async function readMetadata(question: MetadataRequest): Promise<string> {
  const { status, body } = await askMetadata(question);
  const text = body.trim();
  if (status === 200 && text !== "") return text;
  const what = status === 200 ? "an empty answer" : `status ${status}`;
  throw new CloudError("metadata", `${question.method ?? "GET"} ${question.url}`, what, question.fix);
}

async function ask({ url, method = "GET", headers = {}, signal }: MetadataRequest): Promise<MetadataAnswer> {
  // Not fetch: it would take a proxy from the environment. Lazily: other backends share this module.
  const { request } = await import("node:http");
  return await new Promise((resolve, reject) => {
    const asked = request(
      url,
      { method, headers, signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          body += chunk;
          if (body.length > LARGEST_ANSWER) asked.destroy(new Error("the answer is too long"));
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        response.on("error", reject);
      },
    );
    asked.on("error", (error) => reject(signal.aborted ? error : timedOut(error)));
    asked.end();
  });
}

function timedOut(error: Error): Error {
  return error.name === "AbortError" || error.name === "TimeoutError"
    ? new Error(`no answer within ${TIMEOUT_MS} ms`)
    : error;
}
