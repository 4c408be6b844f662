import { CloudError } from "flannel/sdk";
import type { AnyAuthClient, GoogleAuth } from "google-auth-library";
import { type ApiError, ofOperation, toCloudError } from "./errors.ts";

/** The part of an `Operation` (compute/v1) that is used. */
interface Operation {
  readonly name: string;
  readonly status: "PENDING" | "RUNNING" | "DONE";
  readonly httpErrorStatusCode?: number;
  readonly error?: { readonly errors?: ApiError["errors"] };
}

const BASE = "https://compute.googleapis.com/compute/v1/";
const SCOPE = "https://www.googleapis.com/auth/compute";
/** A call gives up after this, ms. */
const TIMEOUT_MS = 15_000;
/** Pauses between looks at an operation, ms: upstream's second, sooner at first. */
const POLL_MS = [200, 400, 800, 1_000] as const;
/** Looks at one operation before it is taken for lost, as upstream. */
const MOST_POLLS = 100;

/**
 * Calls of the Compute API as plain REST; credentials are Application Default Credentials through Google's library.
 * `CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE` moves it, as for gcloud.
 */
export class Api {
  readonly #auth: GoogleAuth<AnyAuthClient>;
  readonly #signal: AbortSignal;
  readonly #base = process.env.CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE || BASE;

  private constructor(auth: GoogleAuth<AnyAuthClient>, signal: AbortSignal) {
    this.#auth = auth;
    this.#signal = signal;
  }

  /** Imports the library; nothing is asked yet. The project is known: the library would run gcloud to find it. */
  static async open(projectId: string, signal: AbortSignal): Promise<Api> {
    // The metadata server has answered already. The library would ask for it under another name too, in vain where
    // there is no resolver, and keep a command from ending until that has failed.
    process.env.METADATA_SERVER_DETECTION ??= "assume-present";
    const { GoogleAuth } = await import("google-auth-library");
    return new Api(new GoogleAuth({ scopes: [SCOPE], projectId }), signal);
  }

  /** One request; `permission` is the IAM permission that it needs. Rejects with CloudError. */
  async call<T>(
    permission: string,
    method: "GET" | "POST" | "DELETE",
    path: string,
    {
      params = {},
      body,
    }: { readonly params?: Readonly<Record<string, string>>; readonly body?: object } = {},
  ): Promise<T> {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    try {
      const response = await this.#auth.request<T>({
        url: url.href,
        method,
        ...(body === undefined ? {} : { data: body }),
        timeout: TIMEOUT_MS,
        retry: false,
        signal: this.#signal,
        responseType: "json",
      });
      return response.data;
    } catch (error) {
      throw toCloudError(error, permission);
    }
  }

  /** Starts an operation and waits until it is done. Rejects with CloudError when it ends with an error. */
  async run(
    permission: string,
    method: "POST" | "DELETE",
    project: string,
    path: string,
    body?: object,
  ): Promise<void> {
    let operation = await this.call<Operation>(permission, method, path, body === undefined ? {} : { body });
    for (let poll = 0; operation.status !== "DONE"; poll++) {
      if (poll >= MOST_POLLS || this.#signal.aborted) {
        const text = `operation ${operation.name} is still ${operation.status}`;
        throw new CloudError("unreachable", permission, text, "It is looked at again by itself.");
      }
      await Bun.sleep(POLL_MS[Math.min(poll, POLL_MS.length - 1)] ?? 1_000);
      const where = `projects/${project}/global/operations/${operation.name}`;
      operation = await this.call<Operation>("compute.globalOperations.get", "GET", where);
    }
    const errors = operation.error?.errors ?? [];
    if (errors.length > 0) throw ofOperation(errors, operation.httpErrorStatusCode, permission);
  }
}
