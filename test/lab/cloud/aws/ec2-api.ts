import type { Namespace } from "../../namespace.ts";
import { Faults } from "../faults.ts";
import { type Listener, listen, problems } from "../listener.ts";
import { readQuery, writeAnswer } from "./query.ts";
import { type AwsKeys, judgeSignature } from "./signature.ts";
import { Ec2Error, VpcState } from "./vpc-state.ts";

/** How far a client's clock may be off, ms. */
const SKEW_MS = 300_000;

/** The EC2 API on one VPC: requests are checked against AWS's own description of it, and their signature. */
export class Ec2Api implements AsyncDisposable {
  readonly vpc = new VpcState();
  readonly faults = new Faults();
  /** Operations in order of arrival, refused ones too. */
  readonly calls: string[] = [];
  /** Operations the caller's role does not permit. */
  readonly forbidden = new Set<string>();
  keys: AwsKeys = { accessKeyId: "ASIATEST1", secretAccessKey: "s3cr3t-Hunter2", sessionToken: "token-1" };
  /** ms by which the clock of the API is ahead. */
  ahead = 0;
  readonly #listener: Listener;

  constructor(namespace?: Namespace, address = "127.0.0.1") {
    this.#listener = listen(namespace, { address }, (request) => this.#answer(request));
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Operations that change something. */
  get changes(): readonly string[] {
    return this.calls.filter((call) => !call.startsWith("Describe"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
  }

  async #answer(request: Request): Promise<Response> {
    const body = await request.text();
    const now = Date.now() + this.ahead;
    const { action, parameters } = readQuery(new URLSearchParams(body));
    this.calls.push(action);
    const refuse = (status: number, code: string, message: string) =>
      new Response(
        `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${code}</Code><Message>${Bun.escapeHTML(message)}</Message></Error></Errors><RequestID>${crypto.randomUUID()}</RequestID></Response>`,
        { status, headers: { "content-type": "text/xml", date: new Date(now).toUTCString() } },
      );
    const fault = this.faults.take(action);
    if (fault && "hang" in fault) await Bun.sleep(fault.hang);
    if (fault && "status" in fault) return refuse(fault.status, fault.code, fault.message ?? fault.code);
    const { problem, signedAt } = await judgeSignature(request, body, this.keys);
    if (problem !== undefined) {
      if (/not signed|digest|match/.test(problem)) problems.push(new Error(`${action}: ${problem}`));
      return refuse(401, "AuthFailure", "AWS was not able to validate the provided access credentials");
    }
    if (Math.abs(signedAt.getTime() - now) > SKEW_MS)
      return refuse(400, "RequestExpired", "Request has expired.");
    if (this.forbidden.has(action)) {
      return refuse(
        403,
        "UnauthorizedOperation",
        `You are not authorized to perform this operation. Encoded authorization failure message: ${"x".repeat(200)}`,
      );
    }
    try {
      const answer = writeAnswer(action, this.vpc.perform(action, parameters));
      if (fault && "doneBut" in fault)
        return refuse(fault.doneBut, "InternalError", "An internal error has occurred");
      return new Response(answer, {
        headers: { "content-type": "text/xml;charset=UTF-8", date: new Date(now).toUTCString() },
      });
    } catch (error) {
      if (!(error instanceof Ec2Error)) throw error;
      return refuse(400, error.code, error.message);
    }
  }
}
