import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Namespace } from "./namespace.ts";
import { type Family, hasV4, hasV6, ROUTER_NUMBER, SWITCH_NUMBER } from "./segment.ts";
import type { Switch } from "./switch.ts";

/** The underlay interface of every host. */
export const UNDERLAY = "ext0";

/**
 * A machine of the cluster: a namespace with `ext0` on a switch, addresses and default routes of its families,
 * forwarding on, and a directory of its own for the daemon's files.
 */
export class Host implements AsyncDisposable {
  readonly namespace: Namespace;
  readonly switch: Switch;
  /** Position on the segment, 1–99. */
  readonly number: number;
  readonly family: Family;
  /** Temporary directory, removed with the host. */
  readonly directory: string;

  private constructor(namespace: Namespace, on: Switch, number: number, family: Family, directory: string) {
    this.namespace = namespace;
    this.switch = on;
    this.number = number;
    this.family = family;
    this.directory = directory;
  }

  /** Sets up host `number` (1–99) on a switch; `family` defaults to the switch's. */
  static async create(on: Switch, number: number, options: { family?: Family } = {}): Promise<Host> {
    if (!Number.isInteger(number) || number < 1 || number >= SWITCH_NUMBER) {
      throw new Error(`a host's number is 1–${SWITCH_NUMBER - 1}, not ${number}`);
    }
    const family = options.family ?? on.family;
    const { segment } = on;
    await using stack = new AsyncDisposableStack();
    const directory = mkdtempSync(join(tmpdir(), `flannel-host${number}-`));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const namespace = stack.use(await Namespace.create(`h${segment.number}-${number}`));
    await on.connect(namespace, UNDERLAY, number);
    await namespace.exec(
      "sh",
      "-ec",
      [
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        "for f in all default ext0; do echo 0 > /proc/sys/net/ipv4/conf/$f/rp_filter; done",
        `ip link set ${UNDERLAY} up`,
        ...(hasV4(family)
          ? [
              `ip address add ${segment.ipv4(number)}/24 dev ${UNDERLAY}`,
              `ip route add default via ${segment.ipv4(ROUTER_NUMBER)} dev ${UNDERLAY}`,
            ]
          : []),
        ...(hasV6(family)
          ? [
              `ip address add ${segment.ipv6(number)}/64 dev ${UNDERLAY} nodad`,
              `ip -6 route add default via ${segment.ipv6(ROUTER_NUMBER)} dev ${UNDERLAY}`,
            ]
          : []),
      ].join("\n"),
    );
    stack.move();
    return new Host(namespace, on, number, family, directory);
  }

  /** Name in tables and messages: `h1`, or `h1@2` on the second segment. */
  get name(): string {
    return this.switch.segment.number === 1 ? `h${this.number}` : `h${this.number}@2`;
  }

  /** Address of `ext0` at creation, without prefix length; throws when the host has no IPv4. */
  get ipv4(): string {
    if (!hasV4(this.family)) throw new Error(`${this.name} has no IPv4 address`);
    return this.switch.segment.ipv4(this.number);
  }

  /** As {@link ipv4}, for IPv6. */
  get ipv6(): string {
    if (!hasV6(this.family)) throw new Error(`${this.name} has no IPv6 address`);
    return this.switch.segment.ipv6(this.number);
  }

  /** MAC address of `ext0` at creation. */
  get mac(): string {
    return this.switch.segment.mac(this.number);
  }

  /** Where the daemon of this host writes its subnet file. */
  get subnetFile(): string {
    return join(this.directory, "subnet.env");
  }

  /** Cuts the host off from everything, silently; see {@link Switch.isolate}. */
  async isolate(): Promise<void> {
    await this.switch.isolate(this.number);
  }

  /** Ends {@link isolate}. */
  async rejoin(): Promise<void> {
    await this.switch.rejoin(this.number);
  }

  /** Cuts the host off from etcd (on the same switch) only; its peers still reach it. */
  async separateFromEtcd(): Promise<void> {
    await this.switch.separate(this.number, SWITCH_NUMBER);
  }

  /** Ends {@link separateFromEtcd}. */
  async reuniteWithEtcd(): Promise<void> {
    await this.switch.reunite(this.number, SWITCH_NUMBER);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.namespace[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
