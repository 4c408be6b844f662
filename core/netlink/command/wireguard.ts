import { errnoOfText } from "../errno.ts";
import { KEY_BYTES } from "../families/wireguard-key.ts";
import { kindUnsupportedFault, linkMissingFault, refusalFault } from "../faults.ts";
import type {
  WireguardChange,
  WireguardEndpoint,
  WireguardPeerChange,
  WireguardPeerState,
  WireguardState,
} from "../wireguard-objects.ts";
import { attempt, type Run } from "./run.ts";

/** Columns of a peer's line of `wg show DEV dump` (wg(8)). */
const PEER_COLUMNS = 8;
/** What `wg` prints in place of nothing. */
const NOTHING = new Set(["(none)", "off", "0"]);

/** `wg show DEV dump`, undefined when there is no WireGuard device of that name. */
export async function readWireguardByCommand(run: Run, dev: string): Promise<WireguardState | undefined> {
  const { stdout, failed } = await attempt(run, "wg", ["show", dev, "dump"]);
  if (failed) return undefined;
  const [device = "", ...peers] = stdout.trimEnd().split("\n");
  const [, publicKey = "", port = ""] = device.split("\t");
  return {
    ...(NOTHING.has(publicKey) ? {} : { publicKey }),
    listenPort: Number(port),
    peers: peers.map((line) => decodePeer(line)),
  };
}

function decodePeer(line: string): WireguardPeerState {
  const columns = line.split("\t");
  if (columns.length !== PEER_COLUMNS)
    throw refusalFault("read what `wg show` printed", { errno: 0, text: "" });
  const [publicKey = "", secret = "", at = "", allowed = "", handshake, rx, tx, keepalive = ""] = columns;
  const endpoint = decodeEndpoint(at);
  return {
    publicKey,
    ...(NOTHING.has(secret) ? {} : { presharedKey: secret }),
    ...(endpoint === undefined ? {} : { endpoint }),
    keepalive: NOTHING.has(keepalive) ? 0 : Number(keepalive),
    allowedIPs: NOTHING.has(allowed) ? [] : allowed.split(","),
    ...(NOTHING.has(handshake ?? "0") ? {} : { lastHandshake: Number(handshake) }),
    rxBytes: Number(rx),
    txBytes: Number(tx),
  };
}

function decodeEndpoint(text: string): WireguardEndpoint | undefined {
  const [, address, port] = /^\[?([^\]]+)\]?:(\d+)$/.exec(text) ?? [];
  return address === undefined ? undefined : { address, port: Number(port) };
}

/** Where `wg` finds a secret: on its standard input. */
const SECRET = "/proc/self/fd/0";
/** All zeros: none. */
const NO_KEY = Buffer.alloc(KEY_BYTES).toString("base64");
/** The standard input we can give is a socket, which cannot be opened by its name; that of a pipe can. */
const PIPED = ["-c", 'cat | exec wg "$@"', "sh"];

/**
 * `wg set DEV private-key /dev/stdin listen-port PORT`, then `wg set DEV peer KEY …` for each peer: keys travel on the
 * standard input, since arguments can be seen by everybody on the host. Throws as Kernel.setWireguard does.
 */
export async function writeWireguardByCommand(run: Run, dev: string, change: WireguardChange): Promise<void> {
  const { privateKey, listenPort, peers = [] } = change;
  const device = [
    ...(privateKey === undefined ? [] : ["private-key", SECRET]),
    ...(listenPort === undefined ? [] : ["listen-port", String(listenPort)]),
  ];
  // The device first: a peer with the key it gets goes with it.
  if (device.length > 0) await write(run, dev, device, privateKey);
  for (const peer of peers) {
    const { remove, presharedKey } = peer;
    const secret = remove || presharedKey === undefined ? undefined : (presharedKey ?? NO_KEY);
    await write(run, dev, ["peer", ...peerArguments(peer)], secret);
  }
}

function peerArguments(peer: WireguardPeerChange): readonly string[] {
  const { publicKey, remove, presharedKey, endpoint, keepalive, allowedIPs } = peer;
  if (remove) return [publicKey, "remove"];
  const at = endpoint && (endpoint.address.includes(":") ? `[${endpoint.address}]` : endpoint.address);
  return [
    publicKey,
    ...(presharedKey === undefined ? [] : ["preshared-key", SECRET]),
    ...(endpoint === undefined ? [] : ["endpoint", `${at}:${endpoint.port}`]),
    ...(keepalive === undefined ? [] : ["persistent-keepalive", String(keepalive)]),
    ...(allowedIPs === undefined ? [] : ["allowed-ips", allowedIPs.join(",")]),
  ];
}

async function write(run: Run, dev: string, args: readonly string[], secret?: string): Promise<void> {
  const words = ["set", dev, ...args];
  const { stderr, failed } =
    secret === undefined
      ? await attempt(run, "wg", words)
      : await attempt(run, "sh", [...PIPED, ...words], secret);
  if (!failed) return;
  if (/no such device/i.test(stderr)) throw linkMissingFault(dev);
  if (/not supported/i.test(stderr)) throw kindUnsupportedFault(dev, "wireguard");
  throw refusalFault(`configure the WireGuard device "${dev}"`, {
    errno: errnoOfText(stderr.split(": ").at(-1) ?? "") ?? 0,
    text: stderr.trim().split("\n").at(-1) ?? "",
  });
}
