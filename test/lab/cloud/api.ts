import type { Namespace } from "../namespace.ts";
import { Faults } from "./faults.ts";
import { type Listener, listen } from "./listener.ts";

/** Keys that an API accepts. */
export interface CloudKeys {
  readonly id: string;
  readonly secret: string;
  /** Of a role; absent for a user's own keys. */
  readonly token?: string;
}

/** A call that arrived and has the right form. */
export interface CloudCall {
  /** As the cloud documents it: `CreateRoute`. */
  readonly name: string;
  /** Judges keys, signature and clock, and does it; throws a {@link Refusal}. */
  perform(): Response | Promise<Response>;
}

/** What the API refuses, with the status of its answer and the cloud's code. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** A cloud's API: what arrived, what goes wrong, and how it is answered. The clouds differ in the form of a call. */
export abstract class CloudApi implements AsyncDisposable {
  readonly faults = new Faults();
  /** Names of calls in order of arrival, refused ones too. */
  readonly calls: string[] = [];
  /** ms by which the clock of the API is ahead. */
  ahead = 0;
  readonly #listener: Listener;

  /** Listens on an address of the namespace, without one on this process's own loopback. */
  constructor(namespace?: Namespace, address = "127.0.0.1") {
    this.#listener = listen(namespace, { address }, (request) => this.#answer(request));
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Calls that change something. */
  get changes(): readonly string[] {
    return this.calls.filter((call) => !call.startsWith("Describe"));
  }

  /** Time of the API, ms since 1970. */
  get now(): number {
    return Date.now() + this.ahead;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  /** Reads a request; what it throws is a mistake in the request's form, which no client may make. */
  protected abstract receive(request: Request): Promise<CloudCall>;

  /** The cloud's form of an error. */
  protected abstract refuse(status: number, code: string, message: string): Response;

  /** The cloud's form of a failure of its own. */
  protected fail(status: number): Response {
    return this.refuse(status, "InternalError", "An internal error has occurred");
  }

  async #answer(request: Request): Promise<Response> {
    const call = await this.receive(request);
    this.calls.push(call.name);
    const fault = this.faults.take(call.name);
    if (fault && "hang" in fault) await Bun.sleep(fault.hang);
    if (fault && "status" in fault) return this.refuse(fault.status, fault.code, fault.message ?? fault.code);
    try {
      const answer = await call.perform();
      return fault && "doneBut" in fault ? this.fail(fault.doneBut) : answer;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.refuse(error.status, error.code, error.message);
    }
  }
}
