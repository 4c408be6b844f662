import { canonicalPrefix } from "../../core/net/prefix.ts";
import type { Host } from "../lab/host.ts";
import { inNamespace } from "../lab/in-namespace.ts";
import type { Located } from "../lab/ping.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";

/** Port of {@link Listener}, in namespaces of the tests only. */
const PORT = 7000;
const WILDCARDS = ["0.0.0.0", "::"] as const;

/**
 * A service that answers every datagram with the address it came from: what a log outside of the cluster would say
 * of a pod.
 */
export class Listener implements Disposable {
  /** Address of the sender of every datagram so far, in order of arrival. */
  readonly senders: string[] = [];
  readonly #sockets: Bun.udp.Socket<"buffer">[] = [];

  /** Listens on all addresses of a namespace, of both families. */
  static async open(place: Located): Promise<Listener> {
    const listener = new Listener();
    for (const hostname of WILDCARDS) listener.#sockets.push(await listener.#bind(place, hostname));
    return listener;
  }

  #bind(place: Located, hostname: string): Promise<Bun.udp.Socket<"buffer">> {
    return inNamespace(place.namespace, () =>
      Bun.udpSocket({
        hostname,
        port: PORT,
        // LIBUS_SOCKET_IPV6_ONLY: the port is left free for the other family.
        ...(hostname === "::" ? { flags: 8 } : {}),
        socket: {
          data: (socket, _, port, address) => {
            this.senders.push(address);
            socket.send(address, port, address);
          },
        },
      }),
    );
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.close();
  }
}

/** Addresses outside of the cluster that stand for a network of `MasqExclude`. */
export const EXCLUDED = { ipv4: "203.0.113.9", ipv6: "fd00:99::9" } as const;

/**
 * Gives the switch the addresses of {@link EXCLUDED} and routes to the pods of a dual-stack host whose daemon is
 * ready, and the host the routes there: a pod that keeps its address can be answered.
 */
export async function routeOutside(host: Host): Promise<void> {
  const on = host.switch;
  const { subnet, ipv6Subnet } = await readSubnetFile(host.subnetFile);
  await on.namespace.ipBatch(
    `address replace ${EXCLUDED.ipv4}/32 dev br0`,
    `address replace ${EXCLUDED.ipv6}/128 dev br0 nodad`,
    `route replace ${networkOf(subnet)} via ${host.ipv4}`,
    `route replace ${networkOf(ipv6Subnet)} via ${host.ipv6}`,
  );
  await host.namespace.ipBatch(
    `route replace ${EXCLUDED.ipv4} via ${on.ipv4}`,
    `route replace ${EXCLUDED.ipv6} via ${on.ipv6}`,
  );
}

/** `10.244.7.1/24` → `10.244.7.0/24` */
function networkOf(gateway = ""): string {
  return canonicalPrefix(gateway) ?? gateway;
}

/**
 * Who a {@link Listener} at `address` takes `from` for; "" when no answer comes within `deadline` ms. Each question
 * comes from a new port, so it is a flow of its own, which the rules of that moment decide about.
 */
export async function seenFrom(from: Located, address: string, deadline = 3_000): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = await inNamespace(from.namespace, () =>
    Bun.udpSocket({
      hostname: address.includes(":") ? "::" : "0.0.0.0",
      port: 0,
      socket: { data: (_, answer) => resolve(answer.toString()) },
    }),
  );
  const timer = setTimeout(resolve, deadline, "");
  try {
    socket.send("who am I?", PORT, address);
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}
