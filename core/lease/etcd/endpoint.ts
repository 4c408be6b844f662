import { Fault } from "../../observe/fault.ts";

/** One etcd member as clients reach it. */
export interface Endpoint {
  /** Canonical URL, e.g. `https://192.0.2.5:2379` or `http://[fd00::5]:2379`. */
  readonly url: string;
  readonly secure: boolean;
}

/** Scheme (optional, as in etcd's own clients), host name, IPv4 or bracketed IPv6 address, port, nothing else. */
const ENDPOINT = /^(?:(https?):\/\/)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\]):(\d{1,5})\/?$/;

const HINT = "give endpoints as http://host:2379 or https://host:2379, separated by commas";

/**
 * Reads the value of `--etcd-endpoints`. Blank entries are left out, doubles are dropped.
 * @throws Fault `ETCD_ENDPOINT` naming the entry; one that carries a user is not repeated, for its password.
 */
export function parseEndpoints(texts: readonly string[]): readonly Endpoint[] {
  const found = new Map<string, Endpoint>();
  for (const text of texts.map((entry) => entry.trim()).filter((entry) => entry !== "")) {
    const endpoint = parseEndpoint(text);
    found.set(endpoint.url, endpoint);
  }
  if (found.size === 0)
    throw new Fault("ETCD_ENDPOINT", "--etcd-endpoints names no etcd member", { hint: HINT });
  return [...found.values()];
}

function parseEndpoint(text: string): Endpoint {
  if (text.includes("@")) {
    throw new Fault("ETCD_ENDPOINT", "--etcd-endpoints has an entry with a user in the URL", {
      hint: "give user and password by --etcd-username and --etcd-password",
    });
  }
  const [, scheme = "http", host = "", port = ""] = ENDPOINT.exec(text) ?? [];
  if (host === "" || Number(port) < 1 || Number(port) > 65535) {
    throw new Fault("ETCD_ENDPOINT", `--etcd-endpoints: ${JSON.stringify(text)} ${reasonAgainst(text)}`, {
      hint: HINT,
    });
  }
  return { url: `${scheme}://${host.toLowerCase()}:${Number(port)}`, secure: scheme === "https" };
}

function reasonAgainst(text: string): string {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1];
  if (scheme !== undefined && !/^https?$/.test(scheme)) return `has the scheme ${scheme}, not http or https`;
  const rest = text.replace(/^https?:\/\//, "");
  if (/[/?#]/.test(rest.replace(/\/$/, "")))
    return "has a path: etcd is reached at the root of a host and port";
  if (!/:\d+\/?$/.test(rest)) return "has no port";
  return "is no host and port";
}
