import { Namespace } from "./namespace.ts";
import { type Family, hasV4, hasV6, Segment, SWITCH_NUMBER } from "./segment.ts";

const BRIDGE = "br0";
const FILTER = "bridge lab";

/**
 * An L2 segment: a namespace with one bridge. Its own address (number 100) is where etcd listens and what stands
 * for "the world outside" of the hosts; it keeps working however the hosts are cut off from each other.
 */
export class Switch implements AsyncDisposable {
  readonly namespace: Namespace;
  readonly segment: Segment;
  readonly family: Family;

  private constructor(namespace: Namespace, segment: Segment, family: Family) {
    this.namespace = namespace;
    this.segment = segment;
    this.family = family;
  }

  /** Lays out segment `number` (default 1) with the switch's own addresses of `family` (default dual). */
  static async create(options: { number?: 1 | 2; family?: Family } = {}): Promise<Switch> {
    const { family = "dual" } = options;
    const segment = new Segment(options.number ?? 1);
    await using stack = new AsyncDisposableStack();
    const namespace = stack.use(await Namespace.create(`sw${segment.number}`));
    await namespace.exec(
      "sh",
      "-ec",
      [
        // Bridged frames must not pass a host's iptables rules here: a switch has none.
        "for f in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e $f ] || echo 0 > $f; done",
        `ip link add ${BRIDGE} address ${segment.mac(SWITCH_NUMBER)} type bridge`,
        `ip link set ${BRIDGE} up`,
        ...(hasV4(family) ? [`ip address add ${segment.ipv4(SWITCH_NUMBER)}/24 dev ${BRIDGE}`] : []),
        ...(hasV6(family) ? [`ip address add ${segment.ipv6(SWITCH_NUMBER)}/64 dev ${BRIDGE} nodad`] : []),
        `nft add table ${FILTER}`,
        `nft add set ${FILTER} pairs '{ type ether_addr . ether_addr; }'`,
        ...["prerouting", "output"].flatMap((hook) => [
          `nft add chain ${FILTER} ${hook} '{ type filter hook ${hook} priority 0; }'`,
          `nft add rule ${FILTER} ${hook} ether saddr . ether daddr @pairs drop`,
        ]),
      ].join("\n"),
    );
    stack.move();
    return new Switch(namespace, segment, family);
  }

  /** The switch's own IPv4 address, without prefix length. */
  get ipv4(): string {
    return this.segment.ipv4(SWITCH_NUMBER);
  }

  /** The switch's own IPv6 address, without prefix length. */
  get ipv6(): string {
    return this.segment.ipv6(SWITCH_NUMBER);
  }

  /** Name of the port that device number `n` of the segment is plugged into. */
  static port(n: number): string {
    return `port${n}`;
  }

  /** Wires device `dev` of `namespace` (created, left down) to the port of number `n`. */
  async connect(namespace: Namespace, dev: string, n: number): Promise<void> {
    const port = Switch.port(n);
    await this.namespace.exec(
      "sh",
      "-ec",
      [
        `ip link add ${dev} netns ${namespace.name} address ${this.segment.mac(n)} type veth peer name ${port}`,
        `ip link set ${port} master ${BRIDGE} up`,
      ].join("\n"),
    );
  }

  /** Drops every frame of a port in both directions; the carrier stays up, as in a broken network. */
  async isolate(n: number): Promise<void> {
    await this.namespace.exec("bridge", "link", "set", "dev", Switch.port(n), "state", "0");
  }

  /** Ends {@link isolate}. */
  async rejoin(n: number): Promise<void> {
    await this.namespace.exec("bridge", "link", "set", "dev", Switch.port(n), "state", "3");
  }

  /** Takes the carrier away from a port (cable pulled) or gives it back. */
  async setCarrier(n: number, up: boolean): Promise<void> {
    await this.namespace.exec("ip", "link", "set", Switch.port(n), up ? "up" : "down");
  }

  /**
   * Drops unicast frames between two numbers of this segment, in both directions, and nothing else. Either may be
   * the switch itself ({@link SWITCH_NUMBER}): that separates a host from etcd while its peers still reach it.
   */
  async separate(a: number, b: number): Promise<void> {
    await this.#pairs("add", a, b);
  }

  /** Ends {@link separate}. */
  async reunite(a: number, b: number): Promise<void> {
    await this.#pairs("delete", a, b);
  }

  async #pairs(action: "add" | "delete", a: number, b: number): Promise<void> {
    const [left, right] = [this.segment.mac(a), this.segment.mac(b)];
    const elements = `{ ${left} . ${right}, ${right} . ${left} }`;
    await this.namespace.exec("nft", `${action} element ${FILTER} pairs ${elements}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.namespace[Symbol.asyncDispose]();
  }
}
