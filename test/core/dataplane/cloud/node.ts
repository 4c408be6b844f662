import { expect } from "bun:test";
import {
  type CloudBackend,
  type CloudChange,
  CloudError,
  type CloudErrorKind,
  type CloudRoute,
} from "flannel/sdk";
import { CloudDriver, type CloudInput } from "../../../../core/dataplane/cloud/driver.ts";
import { newDataplaneStats } from "../../../../core/dataplane/stats.ts";
import type { Peer } from "../../../../core/lease/lease.ts";
import { parsePrefix } from "../../../../core/net/prefix.ts";
import type { Kernel } from "../../../../core/netlink/kernel.ts";
import { Health } from "../../../../core/observe/health.ts";
import { untilAborted } from "../../../../core/retry/abort.ts";
import { RecordingLog } from "../../observe/recording-log.ts";
import { emptyKernel } from "../empty-kernel.ts";

type Store = CloudInput["store"];

/** The subnet of the node. */
export const OWN = "10.244.1.0/24";
const external = { name: "eth0", index: 2, mtu: 9001, ipv4: "192.0.2.1" };
/** The other node. */
export const peer: Peer = {
  key: "10.244.2.0-24",
  backendType: "",
  ipv4: { subnet: "10.244.2.0/24", publicIP: "192.0.2.2" },
};

/** Somebody else's. */
export const FOREIGN: CloudRoute = { dst: "0.0.0.0/0", target: "igw", kind: "foreign", state: "active" };
/** Of a node that is gone. */
export const STALE: CloudRoute = { dst: "10.244.9.0/24", target: "gone", kind: "node", state: "active" };

/** A store that lets this node do everything, and knows of no lease. */
export const LEADING: Store = { lead: async () => true, takenSubnets: async () => [] };

/** A cloud with one table, whose calls fail as the test wants. */
export function setUp(store: Store = {}, left?: CloudInput["left"]) {
  const cloud = {
    /** Called before each read is answered. */
    beforeRead: (): void | Promise<void> => {},
    routes: [] as CloudRoute[],
    calls: [] as string[],
    /** What the next calls of a name reject with. */
    failures: new Map<string, CloudErrorKind>(),
  };
  const call = (name: string) => {
    cloud.calls.push(name);
    const kind = cloud.failures.get(name);
    if (kind) throw new CloudError(kind, `test:${name}`, "it is so", "do this");
  };
  const backend: CloudBackend = {
    mode: "cloud",
    interval: 50,
    stale: { grace: 0, markedOnly: false },
    publish: () => ({ backendType: "" }),
    discover: async () => {
      call("discover");
      return { summary: "here", self: "self" };
    },
    read: async () => {
      call("read");
      await cloud.beforeRead();
      return { tables: [{ id: "t", routes: [...cloud.routes] }] };
    },
    apply: async (change: CloudChange) => {
      call(change.action);
      if (change.action === "set" || change.action === "mark") return;
      cloud.routes = cloud.routes.filter(({ dst }) => dst !== change.dst);
      if (change.action === "delete") return;
      cloud.routes.push({ dst: change.dst, target: change.target, kind: "node", state: "active" });
    },
  };
  const link = { ...external };
  const state = () => ({ ...link, up: true, running: true, loopback: false });
  const { promise: changed, resolve: changeMtu } = Promise.withResolvers<number>();
  const kernel: Kernel = {
    ...emptyKernel(external),
    link: async (name) => ({ ...state(), name }),
    notices: async function* (signal) {
      const mtu = await Promise.race([changed, untilAborted(signal)]);
      if (mtu === undefined) return;
      link.mtu = mtu;
      yield [{ kind: "link", action: "put", link: state() }];
      await untilAborted(signal);
    },
  };
  const log = new RecordingLog();
  const health = new Health(log);
  const controller = new AbortController();
  const repaired: string[] = [];
  const driver = new CloudDriver({
    backend,
    host: { log, signal: controller.signal },
    kernel,
    external,
    networks: [],
    ranges: [{ network: parsePrefix("10.244.0.0/16")!, subnetLen: 24 }],
    store,
    health,
    log,
    stats: newDataplaneStats(),
    timeout: 5_000,
    ...(left ? { left } : {}),
  });
  const mtus: number[] = [];
  const events = {
    published() {},
    mtu: (mtu: number) => void mtus.push(mtu),
    repaired: ({ where }: { where?: string }) => void repaired.push(where ?? ""),
  };
  return {
    cloud,
    driver,
    health,
    log,
    repaired,
    mtus,
    /** `ip link set eth0 mtu MTU`, once. */
    changeMtu,
    count: (name: string) => cloud.calls.filter((each) => each === name).length,
    codes: () => health.list().map(({ code }) => code),
    start: async () => {
      expect(await driver.prepare()).toEqual({ backendType: "" });
      expect(await driver.attach({ subnets: { ipv4: OWN } })).toBe(9001);
      await driver.update(new Map([[peer.key, peer]]));
      const running = driver.run(events, controller.signal);
      return {
        [Symbol.asyncDispose]: async () => {
          controller.abort();
          await running;
        },
      };
    },
  };
}
