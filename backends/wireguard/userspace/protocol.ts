import type {
  WireguardChange,
  WireguardEndpoint,
  WireguardPeerChange,
  WireguardPeerState,
  WireguardState,
} from "flannel/sdk";
import { decodeKey, derivePublicKey } from "../key.ts";

/**
 * The text protocol of WireGuard in user space (wireguard.com/xplatform): lines `key=value`, keys as hex, an empty
 * line at the end of a request and of an answer.
 */
export const GET = "get=1\n\n";

/** A request that makes a change. The order of lines matters: each peer begins with its public key. */
export function encodeSet({ privateKey, listenPort, peers = [] }: WireguardChange): string {
  const lines = [
    "set=1",
    ...(privateKey === undefined ? [] : [`private_key=${toHex(privateKey)}`]),
    ...(listenPort === undefined ? [] : [`listen_port=${listenPort}`]),
    ...peers.flatMap(encodePeer),
  ];
  return `${lines.join("\n")}\n\n`;
}

function encodePeer(peer: WireguardPeerChange): readonly string[] {
  const { publicKey, remove, presharedKey, endpoint, keepalive, allowedIPs } = peer;
  const head = `public_key=${toHex(publicKey)}`;
  if (remove) return [head, "remove=true"];
  return [
    head,
    ...(presharedKey === undefined
      ? []
      : [`preshared_key=${presharedKey === null ? NO_KEY : toHex(presharedKey)}`]),
    ...(endpoint === undefined ? [] : [`endpoint=${encodeEndpoint(endpoint)}`]),
    ...(keepalive === undefined ? [] : [`persistent_keepalive_interval=${keepalive}`]),
    ...(allowedIPs === undefined
      ? []
      : ["replace_allowed_ips=true", ...allowedIPs.map((cidr) => `allowed_ip=${cidr}`)]),
  ];
}

/** An answer: the device, or the error number (positive). */
export type Answer = { readonly errno: number; readonly state: WireguardState };

/** Whether this is a whole answer. */
export function isWhole(text: string): boolean {
  return text.endsWith("\n\n");
}

/** Reads an answer to either request. Throws for text that is none. */
export function decodeAnswer(text: string): Answer {
  let errno: number | undefined;
  let publicKey: string | undefined;
  let listenPort = 0;
  const peers: Mutable[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const equals = line.indexOf("=");
    if (equals < 0) throw new Error("a line without a value");
    const [name, value] = [line.slice(0, equals), line.slice(equals + 1)];
    const peer = peers.at(-1);
    if (name === "errno") errno = Math.abs(toNumber(value));
    else if (name === "private_key" && value !== NO_KEY) publicKey = derivePublicKey(toBase64(value));
    else if (name === "listen_port") listenPort = toNumber(value);
    else if (name === "public_key") {
      peers.push({ publicKey: toBase64(value), keepalive: 0, allowedIPs: [], rxBytes: 0, txBytes: 0 });
    } else if (peer) notePeer(peer, name, value);
  }
  if (errno === undefined) throw new Error("an answer without errno");
  return { errno, state: { ...(publicKey === undefined ? {} : { publicKey }), listenPort, peers } };
}

type Mutable = { -readonly [Key in keyof WireguardPeerState]: WireguardPeerState[Key] };

function notePeer(peer: Mutable, name: string, value: string): void {
  if (name === "preshared_key" && value !== NO_KEY) peer.presharedKey = toBase64(value);
  else if (name === "endpoint") peer.endpoint = decodeEndpoint(value);
  else if (name === "persistent_keepalive_interval") peer.keepalive = toNumber(value);
  else if (name === "allowed_ip") peer.allowedIPs = [...peer.allowedIPs, value];
  else if (name === "last_handshake_time_sec" && value !== "0") peer.lastHandshake = toNumber(value);
  else if (name === "rx_bytes") peer.rxBytes = toNumber(value);
  else if (name === "tx_bytes") peer.txBytes = toNumber(value);
}

/** All zeros: none. */
const NO_KEY = "0".repeat(64);

function encodeEndpoint({ address, port }: WireguardEndpoint): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function decodeEndpoint(text: string): WireguardEndpoint {
  const [, address, port] = /^\[?([^\]]+)\]?:(\d+)$/.exec(text) ?? [];
  if (address === undefined) throw new Error("an endpoint without a port");
  return { address, port: Number(port) };
}

function toNumber(text: string): number {
  const number = Number(text);
  if (text === "" || !Number.isInteger(number)) throw new Error("a number that is none");
  return number;
}

function toHex(key: string): string {
  const bytes = decodeKey(key);
  if (!bytes) throw new Error("not a WireGuard key");
  return bytes.toString("hex");
}

function toBase64(hex: string): string {
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Error("a key that is none");
  return Buffer.from(hex, "hex").toString("base64");
}
