import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

/** Credentials that a counterpart accepts. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

/** What the signer needs of a hash function. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytes(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytes(data));
  }

  async digest(): Promise<Uint8Array> {
    return new Uint8Array(this.#hash.digest());
  }

  reset(): void {}
}

function bytes(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data);
}

/** Why a request is not signed as it has to be (Signature Version 4), undefined when it is; and when it was signed. */
export async function judgeSignature(
  request: Request,
  body: string,
  keys: AwsKeys,
): Promise<{ readonly problem?: string; readonly signedAt: Date }> {
  const authorization = request.headers.get("authorization") ?? "";
  const [, id, region, service, signed = ""] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$/.exec(
      authorization,
    ) ?? [];
  const signedAt = parseDate(request.headers.get("x-amz-date") ?? "");
  if (!id || !region || !service || !signedAt) return { problem: "it is not signed", signedAt: new Date(0) };
  if (id !== keys.accessKeyId) return { problem: `key ${id} is not valid`, signedAt };
  if (request.headers.get("x-amz-security-token") !== keys.sessionToken)
    return { problem: "wrong session token", signedAt };
  const digest = createHash("sha256").update(body).digest("hex");
  if (request.headers.get("x-amz-content-sha256") !== digest)
    return { problem: "the body has another digest", signedAt };
  const url = new URL(request.url);
  const headers: Record<string, string> = {};
  for (const name of signed.split(";")) headers[name] = request.headers.get(name) ?? "";
  for (const name of ["host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"]) {
    if (!(name in headers)) return { problem: `${name} is not signed`, signedAt };
  }
  const signer = new SignatureV4({ service, region, credentials: keys, sha256: Sha256, applyChecksum: true });
  const again = await signer.sign(
    {
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: {},
      headers,
      body,
    },
    { signingDate: signedAt, signableHeaders: new Set(Object.keys(headers)) },
  );
  const right = again.headers.authorization === authorization;
  return right ? { signedAt } : { problem: "the signature does not match", signedAt };
}

/** `20261129T180000Z` */
function parseDate(text: string): Date | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (!parts) return undefined;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts.slice(1).map(Number);
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second));
}
