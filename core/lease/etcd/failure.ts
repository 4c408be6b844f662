import { describeError, Fault } from "../../observe/fault.ts";

/**
 * What a failed call means for what comes next:
 * - `unreachable`, `timeout`, `busy`: another member or a later try may do;
 * - `tls`: as unreachable, but somebody must look at certificates;
 * - `token`: the authentication token is not (or no longer) good: log in again;
 * - `login`, `permission`: user, password or role must be changed by an operator;
 * - `compacted`: the revision asked for is gone;
 * - `lease`: the etcd lease named does not exist;
 * - `space`: etcd refuses writes;
 * - `cancelled`: we ended the call ourselves;
 * - `other`: anything else.
 */
export type FailureKind =
  | "unreachable"
  | "timeout"
  | "busy"
  | "tls"
  | "token"
  | "login"
  | "permission"
  | "compacted"
  | "lease"
  | "space"
  | "cancelled"
  | "other";

/** A failed call: its kind, and a reason without time stamps or addresses, so that equal failures read equal. */
export interface Failure {
  readonly kind: FailureKind;
  readonly reason: string;
}

/** Kinds for which the next member is worth a try. */
export function isMemberFailure({ kind }: Failure): boolean {
  return kind === "unreachable" || kind === "timeout" || kind === "busy" || kind === "tls";
}

/** gRPC status codes (grpc/doc/statuscodes.md) that matter here. */
const CODE = {
  cancelled: 1,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
};

/** Texts of etcd's own errors (etcd api/v3rpc/rpctypes/error.go), which arrive under several codes. */
const ETCD_TEXTS: readonly (readonly [RegExp, FailureKind])[] = [
  [/invalid auth token|auth token is not provided|user name is empty|revision of auth store is old/, "token"],
  [/authentication failed|user name not found/, "login"],
  [/permission denied/, "permission"],
  [/requested lease not found/, "lease"],
  [/revision has been compacted/, "compacted"],
  [/database space exceeded/, "space"],
  [/too many requests|no leader|leader changed|request timed out|not capable|raft|server stopped/, "busy"],
];

/** Traces of TLS in the error texts of Bun's and node's sockets. */
const TLS_TEXT =
  /certificat|self.signed|altname|issuer|unable_to_|cert_|ssl|tls|wrong version number|handshake/i;

/** Names the meaning of what a gRPC call threw or emitted. Never throws. */
export function classify(error: unknown): Failure {
  const { code, text } = readStatus(error);
  for (const [pattern, kind] of ETCD_TEXTS)
    if (pattern.test(text)) return { kind, reason: stripPrefix(text) };
  switch (code) {
    case CODE.cancelled:
      return { kind: "cancelled", reason: "the call was ended" };
    case CODE.deadlineExceeded:
      return { kind: "timeout", reason: "no answer in time" };
    case CODE.permissionDenied:
      return { kind: "permission", reason: stripPrefix(text) };
    case CODE.unauthenticated:
      return { kind: "token", reason: stripPrefix(text) };
    case CODE.outOfRange:
      return { kind: "compacted", reason: stripPrefix(text) };
    case CODE.resourceExhausted:
      return { kind: "busy", reason: stripPrefix(text) };
    case CODE.unimplemented:
      return { kind: "unreachable", reason: "it does not speak the etcd v3 API" };
    case CODE.internal:
    case CODE.unavailable:
      return classifyConnection(text);
    default:
      return { kind: "other", reason: stripPrefix(text) };
  }
}

function classifyConnection(text: string): Failure {
  if (/ECONNREFUSED|refused/i.test(text)) return { kind: "unreachable", reason: "connection refused" };
  if (/before secure TLS connection/i.test(text)) {
    return { kind: "unreachable", reason: "it ended the TLS handshake (does it speak https?)" };
  }
  if (TLS_TEXT.test(text)) return { kind: "tls", reason: reasonOfTls(text) };
  if (/ENOTFOUND|EAI_|name resolution|getaddrinfo/i.test(text)) {
    return { kind: "unreachable", reason: "its name cannot be resolved" };
  }
  if (/EHOSTUNREACH|ENETUNREACH/i.test(text)) return { kind: "unreachable", reason: "no route to it" };
  return { kind: "unreachable", reason: "the connection was lost" };
}

function reasonOfTls(text: string): string {
  if (/expired|not yet valid/i.test(text)) return "its certificate has expired or is not valid yet";
  if (/altname|does not match/i.test(text)) return "its certificate is for another name or address";
  if (/bad.?certificate|certificate.?required|unknown.?ca|handshake.?failure|alert/i.test(text)) {
    return "it refuses our client certificate, or wants one";
  }
  if (/wrong version|unexpected|packet length/i.test(text))
    return "it does not speak TLS: http:// instead of https://?";
  if (/self.signed|unable.to|issuer|verify|local/i.test(text))
    return "its certificate is not signed by the trusted CA";
  return "the TLS handshake failed";
}

/** Code and text of a grpc-js error (`code`, `details`); the text alone of anything else. */
function readStatus(error: unknown): { code: number | undefined; text: string } {
  if (typeof error !== "object" || error === null) return { code: undefined, text: String(error) };
  const code = "code" in error && typeof error.code === "number" ? error.code : undefined;
  const details = "details" in error && typeof error.details === "string" ? error.details : "";
  return { code, text: details === "" ? describeError(error) : details };
}

function stripPrefix(text: string): string {
  return text.replace(/^etcdserver: /, "").trim();
}

const HINTS: Readonly<Record<FailureKind, readonly [code: string, hint: string]>> = {
  unreachable: ["ETCD_UNREACHABLE", "check that etcd runs and that --etcd-endpoints and firewalls are right"],
  timeout: [
    "ETCD_UNREACHABLE",
    "check that etcd runs, that it has a quorum, and that no firewall drops its port",
  ],
  busy: ["ETCD_BUSY", "check the health of the cluster: etcdctl endpoint status --cluster -w table"],
  tls: [
    "ETCD_TLS_VERIFY",
    "check --etcd-cafile, --etcd-certfile, --etcd-keyfile and the names in etcd's certificate",
  ],
  token: ["ETCD_AUTH", "check --etcd-username and --etcd-password; etcd wants authentication"],
  login: ["ETCD_AUTH", "check --etcd-username and --etcd-password"],
  permission: [
    "ETCD_PERMISSION",
    "grant the role read and write below the prefix: etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX/",
  ],
  compacted: ["ETCD_COMPACTED", "nothing to do: the daemon lists anew"],
  lease: ["ETCD_LEASE_GONE", "nothing to do: the daemon takes its lease again"],
  space: ["ETCD_NO_SPACE", "free space: etcdctl compact, etcdctl defrag, then etcdctl alarm disarm"],
  cancelled: ["ETCD_CLOSED", "nothing to do: the daemon is stopping"],
  other: ["ETCD_REQUEST", "look at etcd's log"],
};

/** The fault of failures at one or more members; the gravest kind gives code and hint. */
export function faultOf(failures: readonly { readonly url: string; readonly failure: Failure }[]): Fault {
  const gravest = failures.find(({ failure }) => failure.kind === "tls") ?? failures[0];
  const [code, hint] = HINTS[gravest?.failure.kind ?? "other"];
  const text = failures.map(({ url, failure }) => `${url}: ${failure.reason}`).join("; ");
  return new Fault(code, `etcd ${text}`, { hint });
}
