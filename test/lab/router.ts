import { Namespace } from "./namespace.ts";
import { hasV4, hasV6, ROUTER_NUMBER } from "./segment.ts";
import type { Switch } from "./switch.ts";

/**
 * Joins two segments at L3: hosts behind different switches reach each other, but not on-link. Every host's
 * default gateway already points at its number (254).
 */
export class Router implements AsyncDisposable {
  readonly namespace: Namespace;

  private constructor(namespace: Namespace) {
    this.namespace = namespace;
  }

  /** Plugs a router into both switches and gives the switches their route to each other's segment. */
  static async create(left: Switch, right: Switch): Promise<Router> {
    await using stack = new AsyncDisposableStack();
    const namespace = stack.use(await Namespace.create("router"));
    for (const [near, far] of [
      [left, right],
      [right, left],
    ] as const) {
      const dev = `leg${near.segment.number}`;
      await near.connect(namespace, dev, ROUTER_NUMBER);
      const v4 = hasV4(near.family) && hasV4(far.family);
      const v6 = hasV6(near.family) && hasV6(far.family);
      const [gateway4, gateway6] = [near.segment.ipv4(ROUTER_NUMBER), near.segment.ipv6(ROUTER_NUMBER)];
      await namespace.exec(
        "sh",
        "-ec",
        [
          "echo 1 > /proc/sys/net/ipv4/ip_forward",
          "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
          `ip link set ${dev} up`,
          ...(v4 ? [`ip address add ${gateway4}/24 dev ${dev}`] : []),
          ...(v6 ? [`ip address add ${gateway6}/64 dev ${dev} nodad`] : []),
        ].join("\n"),
      );
      if (v4) await near.namespace.exec("ip", "route", "add", far.segment.networkV4, "via", gateway4);
      if (v6) await near.namespace.exec("ip", "-6", "route", "add", far.segment.networkV6, "via", gateway6);
    }
    stack.move();
    return new Router(namespace);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.namespace[Symbol.asyncDispose]();
  }
}
