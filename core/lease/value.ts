import { parseIPv4 } from "../net/ipv4.ts";
import { formatIPv6, parseIPv6 } from "../net/ipv6.ts";
import type { LeaseAttrs } from "./lease.ts";

/** What upstream's JSON holds for a node without IPv4; read back as "no address". */
const NO_IPV4 = "0.0.0.0";

type Draft = { -readonly [Field in keyof LeaseAttrs]: LeaseAttrs[Field] };

/**
 * The JSON stored under a subnet key, byte for byte as upstream writes it (fixed field order, no spaces,
 * `PublicIPv6` always there, empty backend fields left out, Go's escapes), followed by our `NodeID` and `BootID`.
 */
export function encodeValue(attrs: LeaseAttrs): string {
  const fields = {
    PublicIP: attrs.publicIP ?? NO_IPV4,
    PublicIPv6: attrs.publicIPv6 ?? null,
    BackendType: attrs.backendType === "" ? undefined : attrs.backendType,
    BackendData: attrs.backendData ?? undefined,
    BackendV6Data: attrs.backendV6Data ?? undefined,
    NodeID: attrs.nodeId,
    BootID: attrs.bootId,
  };
  return JSON.stringify(fields).replace(/[<>&\u2028\u2029]/g, escapeLikeGo);
}

/** Go's encoding/json escapes these five inside strings; outside of strings JSON has none of them. */
function escapeLikeGo(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Reads a stored value of ours, of upstream HEAD or of 0.13; unknown fields are ignored. The addresses come out
 * canonical. Never throws: what cannot be used is an `error` that says why, in one clause.
 */
export function decodeValue(text: string): LeaseAttrs | { readonly error: string } {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return { error: text.trim() === "" ? "the value is empty" : "the value is not JSON" };
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    return { error: "the value is not a JSON object" };
  }
  const attrs: Draft = { backendType: "" };
  const fields = document as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    const error = (READERS.get(name) ?? READERS.get(name.toLowerCase()))?.(attrs, fields[name]);
    if (error !== undefined) return { error };
  }
  if (attrs.publicIP === undefined && attrs.publicIPv6 === undefined && attrs.nodeId === undefined) {
    return { error: "the value names no owner: neither PublicIP nor PublicIPv6 nor NodeID" };
  }
  return attrs;
}

/** Takes the content of one field into the draft; returns what is wrong with it. */
type Reader = (attrs: Draft, content: unknown) => string | undefined;

/**
 * A reader for every field, by its own spelling (which is all there is in a healthy store, and is read thousands of
 * times at start) and in lower case: Go's decoder matches names case-insensitively.
 */
const READERS: ReadonlyMap<string, Reader> = new Map(
  Object.entries<Reader>({
    PublicIP: readPublicIP,
    PublicIPv6: readPublicIPv6,
    BackendType: (attrs, content) => readText(attrs, "backendType", "BackendType", content),
    BackendData: (attrs, content) => assign(attrs, "backendData", content ?? undefined),
    BackendV6Data: (attrs, content) => assign(attrs, "backendV6Data", content ?? undefined),
    NodeID: (attrs, content) => readText(attrs, "nodeId", "NodeID", content),
    BootID: (attrs, content) => readText(attrs, "bootId", "BootID", content),
  }).flatMap(([name, reader]) => [[name, reader] as const, [name.toLowerCase(), reader] as const]),
);

function readPublicIP(attrs: Draft, content: unknown): string | undefined {
  if (typeof content !== "string" || parseIPv4(content) === undefined) {
    return `PublicIP ${quote(content)} is not an IPv4 address`;
  }
  assign(attrs, "publicIP", content === NO_IPV4 ? undefined : content);
  return undefined;
}

function readPublicIPv6(attrs: Draft, content: unknown): string | undefined {
  if (content === null) {
    assign(attrs, "publicIPv6", undefined);
    return undefined;
  }
  const address = typeof content === "string" ? parseIPv6(content) : undefined;
  if (address === undefined) return `PublicIPv6 ${quote(content)} is not an IPv6 address`;
  assign(attrs, "publicIPv6", address === 0n ? undefined : formatIPv6(address));
  return undefined;
}

function readText(
  attrs: Draft,
  property: "backendType" | "nodeId" | "bootId",
  field: string,
  content: unknown,
): string | undefined {
  if (content !== null && typeof content !== "string") return `${field} ${quote(content)} is not a string`;
  const text = content ?? "";
  if (property === "backendType") attrs.backendType = text;
  else assign(attrs, property, text === "" ? undefined : text);
  return undefined;
}

/** Sets or removes an optional property: an absent one is absent, never `undefined`. */
function assign<Field extends keyof Draft>(
  attrs: Draft,
  field: Field,
  content: Draft[Field] | undefined,
): undefined {
  if (content !== undefined) attrs[field] = content;
  else if (field in attrs) delete attrs[field];
}

/** The offending content for a message, cut short: a value may be a megabyte long. */
function quote(content: unknown): string {
  if (typeof content === "object" && content !== null) return Array.isArray(content) ? "[…]" : "{…}";
  const text = JSON.stringify(content);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
