import { askMetadata, CloudError, readMetadata } from "flannel/sdk";

/** Where an instance is, from its identity document. */
export interface Identity {
  readonly instanceId: string;
  readonly region: string;
}

const BASE = "http://169.254.169.254";
/** How long a token is good for, seconds: one round of questions. */
const TOKEN_SECONDS = "60";

const FIX =
  "flanneld has to run on an EC2 instance whose metadata service is on. In a container the instance needs " +
  "HttpPutResponseHopLimit 2 (EC2 console → instance → Actions → Modify instance metadata options), or host networking.";

/**
 * Asks the instance metadata service, version 2 (session tokens), who this instance is. Version 1 only where the option
 * allows it and no token can be had. `AWS_EC2_METADATA_SERVICE_ENDPOINT` moves it, as for the SDK.
 * Rejects with CloudError `metadata`.
 */
export async function identify(allowV1: boolean, signal: AbortSignal): Promise<Identity> {
  const base = (process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT ?? BASE).replace(/\/$/, "");
  const token = await fetchToken(base, allowV1, signal);
  const url = `${base}/latest/dynamic/instance-identity/document`;
  const headers = token === undefined ? {} : { "X-aws-ec2-metadata-token": token };
  const text = await readMetadata({ url, headers, fix: FIX, signal });
  const { instanceId, region } = parse(text);
  if (typeof instanceId === "string" && typeof region === "string") return { instanceId, region };
  throw new CloudError("metadata", `GET ${url}`, "the answer names no instanceId and region", FIX);
}

async function fetchToken(base: string, allowV1: boolean, signal: AbortSignal): Promise<string | undefined> {
  const url = `${base}/latest/api/token`;
  const headers = { "X-aws-ec2-metadata-token-ttl-seconds": TOKEN_SECONDS };
  const fix = `${FIX} Where it has no session tokens (IMDSv2), set AllowIMDSv1 to true in the Backend.`;
  try {
    // A container beyond the hop limit is never answered: where version 1 does as well, once is enough.
    const tries = allowV1 ? { tries: 1 } : {};
    const { status, body } = await askMetadata({ url, method: "PUT", headers, fix, signal, ...tries });
    if (status === 200 && body.trim() !== "") return body.trim();
    throw new CloudError("metadata", `PUT ${url}`, `status ${status}`, fix);
  } catch (error) {
    if (allowV1) return undefined;
    throw error;
  }
}

function parse(text: string): { readonly instanceId?: unknown; readonly region?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
