import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { Fault } from "flannel/sdk";
import { decodeKey, derivePublicKey, generatePrivateKey } from "./key.ts";

/** Where the private key may lie. */
export interface KeyPlaces {
  /** `WIREGUARD_KEY_FILE`: the only place, when it is set. */
  readonly named?: string;
  /** Ours by default: it survives a reboot. */
  readonly durable: string;
  /** Upstream's default, which does not. */
  readonly upstream: string;
}

/** A private key in use. */
export interface PrivateKey {
  /** A secret: never in a message. */
  readonly privateKey: string;
  readonly publicKey: string;
  readonly file: string;
  readonly origin: "read" | "taken over from upstream" | "made";
  /** Whether it outlives a reboot, as far as we know. */
  readonly durable: boolean;
  /** Whether others than its owner may read the file. */
  readonly exposed: boolean;
}

const DURABLE = "/var/lib/flannel/wgkey";
const UPSTREAM = "/run/flannel/wgkey";

/** A key is 44 characters; whatever is much larger is not one. */
const MOST_BYTES = 1024;

/** The places on this machine. */
export function keyPlaces(env: Readonly<Record<string, string | undefined>> = process.env): KeyPlaces {
  const named = env.WIREGUARD_KEY_FILE;
  return { durable: DURABLE, upstream: UPSTREAM, ...(named === undefined ? {} : { named }) };
}

/**
 * The key of this node if it has one yet; writes nothing. Throws Fault `WIREGUARD_KEY_FILE` for a file that is there
 * and holds none, or cannot be read.
 */
export function findKey({ named, durable, upstream }: KeyPlaces): PrivateKey | undefined {
  if (named === "") {
    throw new Fault("WIREGUARD_KEY_FILE", "WIREGUARD_KEY_FILE is set but empty", {
      hint: `Set it to the path of a file, or unset it: the key is then kept in ${durable}.`,
    });
  }
  if (named !== undefined) return readKey(named, { origin: "read", durable: true });
  return (
    readKey(durable, { origin: "read", durable: true }) ??
    readKey(upstream, { origin: "taken over from upstream", durable: false })
  );
}

/**
 * The key of this node, made when it has none, and moved to where it lasts when it is upstream's. Where that cannot be
 * written, the key is kept in upstream's place. Throws Fault `WIREGUARD_KEY_FILE`.
 */
export function keepKey(places: KeyPlaces): PrivateKey {
  const found = findKey(places);
  if (found?.durable) return found;
  const made = found?.privateKey ?? generatePrivateKey();
  const origin = found?.origin ?? "made";
  const { named, durable, upstream } = places;
  if (named !== undefined) return writeKey(named, made, { origin, durable: true });
  try {
    return writeKey(durable, made, { origin, durable: true });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return found ?? writeKey(upstream, made, { origin, durable: false });
  }
}

type Kind = Pick<PrivateKey, "origin" | "durable">;

function readKey(file: string, kind: Kind): PrivateKey | undefined {
  let text: string;
  let mode: number;
  try {
    const fd = openSync(file, "r");
    try {
      const stat = fstatSync(fd);
      mode = stat.mode;
      if (!stat.isFile()) throw new Error("it is no regular file");
      if (stat.size > MOST_BYTES) throw new Error(`it has ${stat.size} bytes`);
      text = readFileSync(fd, "utf8").trim();
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw keyFault(`cannot read the private key ${file}: ${describe(error)}`, file);
  }
  // Never the text itself: a key with a typing error is nearly the key.
  if (!decodeKey(text)) throw keyFault(`${file} holds no WireGuard key (32 bytes as base64)`, file);
  return {
    privateKey: text,
    publicKey: derivePublicKey(text),
    file,
    exposed: (mode & 0o077) !== 0,
    ...kind,
  };
}

/** Writes a file that is not there yet, whole or not at all; one that somebody else writes meanwhile counts. */
function writeKey(file: string, privateKey: string, kind: Kind): PrivateKey {
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    discard(draft);
    const fd = openSync(draft, "wx", 0o400);
    try {
      writeSync(fd, privateKey);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    linkSync(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    const earlier = codeOf(error) === "EEXIST" ? readKey(file, { ...kind, origin: "read" }) : undefined;
    if (earlier) return earlier;
    throw keyFault(`cannot write the private key ${file}: ${describe(error)}`, file);
  } finally {
    discard(draft);
  }
  return { privateKey, publicKey: derivePublicKey(privateKey), file, exposed: false, ...kind };
}

/** Removes a draft, of this run or of one that was killed. */
function discard(draft: string): void {
  try {
    unlinkSync(draft);
  } catch {
    // There is none, or no folder for one: writing it says what is wrong.
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function keyFault(message: string, file: string): Fault {
  return new Fault("WIREGUARD_KEY_FILE", message, {
    hint: `It is left as it is. Restore it, or remove it to let a new key be made (peers learn it by themselves): rm ${file}`,
  });
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
