import { CloudApi, type CloudCall, Refusal } from "../api.ts";
import { problems } from "../listener.ts";
import { readQuery, writeAnswer } from "./query.ts";
import { type AwsKeys, judgeSignature } from "./signature.ts";
import { VpcState } from "./vpc-state.ts";

/** How far a client's clock may be off, ms. */
const SKEW_MS = 300_000;

/** The EC2 API on one VPC: requests are checked against AWS's own description of it, and their signature. */
export class Ec2Api extends CloudApi {
  readonly vpc = new VpcState();
  /** Operations the caller's role does not permit. */
  readonly forbidden = new Set<string>();
  keys: AwsKeys = { accessKeyId: "ASIATEST1", secretAccessKey: "s3cr3t-Hunter2", sessionToken: "token-1" };
  protected async receive(request: Request): Promise<CloudCall> {
    const body = await request.text();
    const { action: name, parameters } = readQuery(new URLSearchParams(body));
    const perform = async () => {
      await this.#admit(name, request, body);
      const answer = writeAnswer(name, this.vpc.perform(name, parameters));
      return new Response(answer, { headers: { "content-type": "text/xml;charset=UTF-8", ...this.#date() } });
    };
    return { name, perform };
  }

  protected refuse(status: number, code: string, message: string): Response {
    return new Response(
      `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${code}</Code><Message>${Bun.escapeHTML(message)}</Message></Error></Errors><RequestID>${crypto.randomUUID()}</RequestID></Response>`,
      { status, headers: { "content-type": "text/xml", ...this.#date() } },
    );
  }

  /** Lets nobody in with other keys than ours, with a clock that is off, or without permission. */
  async #admit(action: string, request: Request, body: string): Promise<void> {
    const { problem, signedAt } = await judgeSignature(request, body, this.keys);
    if (problem !== undefined) {
      if (/not signed|digest|match/.test(problem)) problems.push(new Error(`${action}: ${problem}`));
      throw new Refusal(401, "AuthFailure", "AWS was not able to validate the provided access credentials");
    }
    if (Math.abs(signedAt.getTime() - this.now) > SKEW_MS)
      throw new Refusal(400, "RequestExpired", "Request has expired.");
    if (this.forbidden.has(action)) {
      throw new Refusal(
        403,
        "UnauthorizedOperation",
        `You are not authorized to perform this operation. Encoded authorization failure message: ${"x".repeat(200)}`,
      );
    }
  }

  /** Clients learn from it by how much their clock is off. */
  #date() {
    return { date: new Date(this.now).toUTCString() };
  }
}
