import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { daemonOptions, PSK } from "./ipsec-lab.ts";
import { keyFile } from "./wireguard-lab.ts";

/** Options of the backends that are tried, by type. */
const BACKENDS = {
  vxlan: {},
  "host-gw": {},
  udp: {},
  alloc: {},
  ipip: {},
  wireguard: {},
  ipsec: { PSK },
  extension: {
    SubnetAddCommand: "ip route replace $SUBNET via $PUBLIC_IP dev ext0 proto 150",
    SubnetRemoveCommand: "ip route flush exact $SUBNET",
    ShutdownCommand: "ip route flush proto 150",
  },
} as const;
export type Type = keyof typeof BACKENDS;

/** What tells that a backend was here: its devices, and what lies outside devices. Checked line by line. */
const TRACES: Readonly<Record<Type, RegExp>> = {
  vxlan: /\bflannel\.\d/,
  "host-gw": /10\.244\.\d+\.0\/24 via \S+ dev ext0 proto 140/,
  udp: /\bflannel0\b/,
  alloc: /^$/,
  ipip: /\bflannel\.ipip\b/,
  wireguard:
    /\bflannel-wg\b|blackhole .*metric \d{5,}.*proto 140|blackhole .*proto 140.*metric \d{5,}|wireguard-go/,
  ipsec:
    /^xfrm|charon|10\.244\.\d+\.0(\/32)? (dev|scope global) lo|blackhole 10\.244\.0\.0\/16 proto 140|10\.244\.\d+\.0\/24 dev ext0/,
  extension: /proto 150/,
};

/** A change from one backend to the next. */
export type Step = readonly [Type, Type];

/**
 * A walk that goes each of the ways once, one after the other (Hierholzer's algorithm). There must be one from `start`.
 * `twoWay` ways are gone in one direction only, whichever fits.
 */
export function walkAll(start: Type, ways: readonly Step[], twoWay = false): readonly Step[] {
  const left = [...ways];
  const stack: Type[] = [start];
  const visited: Type[] = [];
  for (let here = stack.at(-1); here !== undefined; here = stack.at(-1)) {
    const at = left.findIndex(([from, to]) => from === here || (twoWay && to === here));
    if (at < 0) visited.unshift(stack.pop() as Type);
    else {
      const [[from, to]] = left.splice(at, 1) as [Step];
      stack.push(from === here ? to : from);
    }
  }
  const steps = visited.slice(1).map((to, n): Step => [visited[n] as Type, to]);
  if (steps.length !== ways.length) throw new Error(`there is no such walk from ${start}`);
  return steps;
}

/** Every ordered pair of different backends. */
export function orderedPairs(types: readonly Type[]): readonly Step[] {
  return types.flatMap((from) => types.filter((to) => to !== from).map((to): Step => [from, to]));
}

/** Shows everything that a backend may make, one thing a line; numbers that differ from run to run are left out. */
const SHOW = `
ip -d -o link show | sed -E 's/^[0-9]+: /link /; s/(promiscuity|numtxqueues|qlen).*//; s/ state [A-Z]+//; s/ (link.ether|link.none) .*(vxlan|ipip|tun|wireguard)/ \\2/'
ip -4 -o address show | sed -E 's/^[0-9]+: /address /; s/valid_lft.*//; s/[\\]//g'
ip -4 route show table all | sed 's/^/route /'
ip -6 route show table all proto 140 | sed 's/^/route /'
ip nexthop show | sed 's/^/nexthop /'
ip neigh show nud permanent | sed 's/^/neighbour /'
bridge fdb show | grep flannel | sed 's/^/fdb /'
(ip xfrm policy list || true) 2>/dev/null | grep -v '^.socket' | paste -sd ' ' | sed -E 's/ ?src ([0-9.]+[/])/\\nxfrm policy \\1/g' 
(ip xfrm state list || true) 2>/dev/null | grep ^src | sed 's/^/xfrm state /' | sort -u
nft list ruleset | sed -E 's/counter packets [0-9]+ bytes [0-9]+/counter/; s/^[ \t]*/nft /; s/ # handle.*//'
`;

/** The pods' side; what the kernel has of itself with ipip; where a charon that was killed is noted down, for the next. */
const NOT_OURS = /cni0|pod1|tunl0|subnet\.env\.charon/;

/** What a backend may have made on a host: sorted lines. */
export async function hostState(host: Host): Promise<readonly string[]> {
  const text = await host.namespace.exec("sh", "-c", SHOW);
  const pids = (await host.namespace.run(["ip", "netns", "pids", host.namespace.name])).stdout.split("\n");
  const processes = await Promise.all(
    pids
      .filter((pid) => pid !== "")
      .map((pid) =>
        Bun.file(`/proc/${pid}/comm`)
          .text()
          .catch(() => ""),
      ),
  );
  const files = readdirSync(host.directory).filter((name) => name.startsWith("subnet.env"));
  return [
    ...text.split("\n"),
    ...processes.filter((name) => /charon|wireguard/.test(name)).map((name) => `process ${name}`),
    ...files.map((name) => `file ${name}`),
  ]
    .map((line) => line.replaceAll(/\s+/g, " ").trim())
    .filter((line) => line !== "" && !NOT_OURS.test(line))
    .sort();
}

/** Two hosts with a pod each on which one backend follows another. */
export class BackendWalk implements AsyncDisposable {
  readonly #cluster: Cluster;
  #daemons: readonly Daemon[] = [];
  /** What each host has with a backend that was the first on it, or, for lack of that, when it first was there. */
  readonly #fresh = new Map<Type, readonly (readonly string[])[]>();
  #subnets: readonly string[] = [];

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /**
   * The hosts. What each of the backends makes there is learned from a start on a host on which nothing is; that is
   * twice the work, so where starts are slow there are none to learn from, and only what tells of others is looked for.
   */
  static async create(types: readonly Type[] = []): Promise<BackendWalk> {
    const walk = new BackendWalk(await Cluster.create({ hosts: 2, config: null }));
    try {
      const bare = await walk.#look();
      for (const type of types) {
        await walk.#start(type);
        await walk.#needPods();
        await walk.#untilPods(type);
        walk.#fresh.set(type, await walk.#settled());
        await Promise.all(walk.#daemons.map((daemon) => daemon.stop()));
        await Promise.all(walk.#cluster.hosts.map((host) => walk.#cleanUp(host)));
        expect(await walk.#look()).toEqual([...bare]);
      }
      return walk;
    } catch (error) {
      await walk[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Begins with a backend. */
  async begin(type: Type): Promise<void> {
    await this.#start(type);
    await this.#needPods();
    await this.#expect(type);
  }

  /** Ends the daemons that way and starts them with the other backend: all is as if there had been no other one. */
  async change(to: Type, signal: NodeJS.Signals): Promise<void> {
    await Promise.all(this.#daemons.map((daemon) => daemon.stop(signal)));
    await this.#start(to);
    await this.#expect(to);
  }

  async #start(type: Type): Promise<void> {
    await this.#cluster.configure(networkConfig("v4", { Type: type, ...BACKENDS[type] }));
    this.#daemons = this.#cluster.hosts.map((host) => {
      const { file, env } = daemonOptions(host, "kernel");
      return this.#cluster.startDaemon(host, {
        ...(file === undefined ? {} : { file }),
        env: { ...env, WIREGUARD_KEY_FILE: keyFile(host) },
        flags: ["--ip-masq"],
      });
    });
    await Promise.all(this.#daemons.map((daemon) => daemon.ready));
  }

  async #needPods(): Promise<void> {
    if (this.#subnets.length > 0) return;
    await this.#cluster.addPods();
    this.#subnets = await this.#readSubnets();
  }

  async #expect(type: Type): Promise<void> {
    expect(await this.#readSubnets()).toEqual([...this.#subnets]);
    await this.#untilPods(type);
    let now: readonly (readonly string[])[] = [];
    const look = async () => {
      now = await this.#look();
      return now;
    };
    const fresh = this.#fresh.get(type);
    if (!fresh) {
      await until(async () => tracesOfOthers(await look(), type).length === 0, {
        message: () => `nothing but ${type} is here\n${tracesOfOthers(now, type).join("\n")}`,
        deadline: 5_000,
        interval: 500,
      });
      for (const state of now) expect(state.filter((line) => TRACES[type].test(line))).not.toBeEmpty();
      this.#fresh.set(type, now);
      return;
    }
    await until(async () => Bun.deepEquals(await look(), fresh), {
      message: () => {
        const lines = now.flatMap((seen, n) => [
          ...seen.filter((line) => !fresh[n]?.includes(line)).map((line) => `h${n + 1} has ${line}`),
          ...(fresh[n] ?? []).filter((line) => !seen.includes(line)).map((line) => `h${n + 1} lacks ${line}`),
        ]);
        return `all is as after a first start with ${type}\n${lines.join("\n")}`;
      },
      deadline: 5_000,
      interval: 200,
    });
  }

  async #untilPods(type: Type): Promise<void> {
    if (type === "alloc") return;
    const [p1, p2] = this.#cluster.pods as [Pod, Pod];
    await until(async () => (await ping(p1, p2.ipv4, { count: 1 })).received === 1, {
      message: () =>
        `pods reach each other by ${type}\n${this.#daemons.map((each) => each.tail()).join("\n")}`,
      deadline: 20_000,
    });
  }

  /** The state once it does not change any more. */
  async #settled(): Promise<readonly (readonly string[])[]> {
    let last = await this.#look();
    await until(
      async () => {
        const before = last;
        last = await this.#look();
        return Bun.deepEquals(before, last);
      },
      { message: "a state that lasts", interval: 500 },
    );
    return last;
  }

  #look(): Promise<(readonly string[])[]> {
    return Promise.all(this.#cluster.hosts.map(hostState));
  }

  #readSubnets(): Promise<string[]> {
    return Promise.all(
      this.#cluster.hosts.map(async (host) => (await readSubnetFile(host.subnetFile)).subnet ?? "none"),
    );
  }

  async #cleanUp(host: Host): Promise<void> {
    const { file = "", env } = daemonOptions(host, "kernel");
    const { stdout, stderr, exitCode } = await host.namespace.run(
      [
        file,
        "cleanup",
        `--subnet-file=${host.subnetFile}`,
        "--iface=ext0",
        `--etcd-endpoints=${endpointFor(host, this.#cluster.switch)}`,
      ],
      { env: { PATH: process.env.PATH ?? "", ...env, WIREGUARD_KEY_FILE: keyFile(host) } },
    );
    if (exitCode !== 0) throw new Error(`cleanup on ${host.name}: ${stdout}${stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function tracesOfOthers(states: readonly (readonly string[])[], type: Type): readonly string[] {
  const others = (Object.keys(TRACES) as Type[]).filter((other) => other !== type);
  return states.flatMap((lines, n) =>
    lines
      .filter((line) => !TRACES[type].test(line))
      .flatMap((line) =>
        others.filter((other) => TRACES[other].test(line)).map((other) => `h${n + 1}: ${other} left ${line}`),
      ),
  );
}
