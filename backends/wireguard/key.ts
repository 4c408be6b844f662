import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";

/** Bytes of a key of WireGuard: a Curve25519 point, scalar or a pre-shared secret. */
const KEY_BYTES = 32;
/** What PKCS #8 puts before the 32 bytes of an X25519 private key (RFC 8410 §7). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b656e04220420", "hex");

const NO_KEY = Buffer.alloc(KEY_BYTES).toString("base64");

/** The bytes of base64 text of 32 bytes; undefined for anything else, another spelling of the same bytes included. */
export function decodeKey(text: unknown): Buffer | undefined {
  if (typeof text !== "string") return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === KEY_BYTES && bytes.toString("base64") === text ? bytes : undefined;
}

/** Whether a value is a public key some node can have: all zeros is none. */
export function isPublicKey(value: unknown): value is string {
  return value !== NO_KEY && decodeKey(value) !== undefined;
}

/** A new private key as base64 text, clamped as RFC 7748 §5 has it, which is what `wg genkey` prints. */
export function generatePrivateKey(): string {
  const bytes = randomBytes(KEY_BYTES);
  bytes[0] = (bytes[0] ?? 0) & 0xf8;
  bytes[31] = ((bytes[31] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("base64");
}

/** The public key of a private one of base64 text, as `wg pubkey` prints it. Throws for text that is no key. */
export function derivePublicKey(privateKey: string): string {
  const bytes = decodeKey(privateKey);
  if (!bytes) throw new Error("not a WireGuard key");
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, bytes]), format: "der", type: "pkcs8" });
  return createPublicKey(key).export({ type: "spki", format: "der" }).subarray(-KEY_BYTES).toString("base64");
}
