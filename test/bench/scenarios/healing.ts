import type { Kernel } from "../../../core/netlink/kernel.ts";
import { kernelIn } from "../../lab/in-namespace.ts";
import { until } from "../../lab/until.ts";
import { inTurns, type Scenario, type Session, type Subject } from "../scenario.ts";
import { type BenchHost, DEVICE, Testbed } from "../testbed.ts";

const PEERS = 1_000;
const QUICK_PEERS = 50;
/** The bound for what is on our devices, ms, and the resync period for rules. */
const HEALED_MS = 3_000;
const RULES_MS = 5_000;
/** Longest time that is waited, and the time between two looks, ms. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 5;

/** What is broken, with the objects of which kind it takes away. */
interface Harm {
  readonly id: string;
  readonly label: string;
  readonly atMost: number;
  readonly harm: (site: Site) => Promise<unknown>;
  readonly isWhole: (site: Site) => Promise<boolean>;
}

/** Where it happens. */
interface Site {
  readonly kernel: Kernel;
  readonly host: BenchHost;
  readonly peers: number;
}

const HARMS: readonly Harm[] = [
  {
    id: "device",
    label: "device deleted",
    atMost: HEALED_MS,
    harm: ({ kernel }) => kernel.deleteLink(DEVICE),
    isWhole: async (site) =>
      (await site.kernel.link(DEVICE))?.up === true && (await hasRoutes(site)) && (await hasEntries(site)),
  },
  {
    id: "routes",
    label: "all routes flushed",
    atMost: HEALED_MS,
    harm: async ({ kernel }) => {
      const routes = await kernel.routes(4, { dev: DEVICE });
      const ours = routes.filter(({ dst }) => dst.endsWith("/24"));
      await kernel.apply(
        ours.map(({ dst }) => ({ action: "delete", object: { kind: "route", dst, dev: "" } })),
      );
    },
    isWhole: (site) => hasRoutes(site),
  },
  {
    id: "nexthops",
    label: "all next hops flushed",
    atMost: HEALED_MS,
    harm: async ({ kernel }) => {
      const nexthops = (await kernel.nexthops()).filter(({ dev }) => dev === DEVICE);
      await kernel.apply(
        nexthops.map(({ id, via = "" }) => ({
          action: "delete",
          object: { kind: "nexthop", id, dev: DEVICE, via },
        })),
      );
    },
    isWhole: (site) => hasRoutes(site),
  },
  {
    id: "fdb",
    label: "all forwarding entries flushed",
    atMost: HEALED_MS,
    harm: async ({ kernel }) => {
      const entries = await kernel.fdb(DEVICE);
      await kernel.apply(
        entries.flatMap(({ mac, dst }) =>
          dst === undefined
            ? []
            : [{ action: "delete", object: { kind: "fdb", dev: DEVICE, mac, dst } } as const],
        ),
      );
    },
    isWhole: (site) => hasEntries(site),
  },
  {
    id: "neighbours",
    label: "all neighbours flushed",
    atMost: HEALED_MS,
    harm: async ({ kernel }) => {
      const neighbours = await kernel.neighbours(4, DEVICE);
      await kernel.apply(
        neighbours.map(({ ip, mac = "" }) => ({
          action: "delete",
          object: { kind: "neighbour", dev: DEVICE, ip, mac },
        })),
      );
    },
    isWhole: (site) => hasEntries(site),
  },
  {
    id: "rules",
    label: "rules of iptables flushed",
    atMost: RULES_MS,
    harm: ({ host }) => host.host.namespace.exec("sh", "-ec", "iptables-nft -F; iptables-nft -t nat -F"),
    isWhole: async ({ host }) => {
      const saved = await host.host.namespace.exec("iptables-nft-save");
      return saved.includes("-j FLANNEL-FWD") && saved.includes("-j FLANNEL-POSTRTG");
    },
  },
];

/** From the harm until everything is as it was, by kind of harm. */
export const healing: Scenario = {
  name: "healing",
  title: "repair of what others break",
  figures: (quick) =>
    HARMS.map(({ id, label, atMost }) => ({
      id,
      label: id === "rules" ? label : `${sizeOf(quick).toLocaleString("en")} peers: ${label}`,
      unit: "ms",
      atMost,
      oursOnly: true,
    })),
  async measure(session) {
    const peers = sizeOf(session.quick);
    await using testbed = await Testbed.create(peers);
    const ours = { ...session, subjects: session.subjects.filter((subject) => subject.ours) };
    await inTurns(ours, "healing", (subject) => measureRun(session, testbed, subject));
    session.note("From the end of the harm; the kernel is looked at every 5 ms.");
  },
};

function sizeOf(quick: boolean): number {
  return quick ? QUICK_PEERS : PEERS;
}

async function measureRun(session: Session, testbed: Testbed, subject: Subject): Promise<void> {
  await using host = await testbed.addHost();
  const { daemon } = host.start(subject, { flags: ["--ip-masq"] });
  await daemon.ready;
  await host.verify();
  using kernel = kernelIn(host.host.namespace);
  const site: Site = { kernel, host, peers: testbed.peers };
  for (const { id, label, harm, isWhole } of HARMS) {
    const wait = (what: string) =>
      until(() => isWhole(site), {
        message: () => `${label}: not ${what}\n${daemon.tail()}`,
        deadline: PATIENCE_MS,
        interval: LOOK_MS,
      });
    await wait("whole before");
    await harm(site);
    const from = performance.now();
    await wait("healed");
    session.record(id, subject, performance.now() - from);
    // The next harm is not to fall into the pauses that the last one's repair brings.
    await Bun.sleep(HEALED_MS);
  }
}

async function hasRoutes({ kernel, peers }: Site): Promise<boolean> {
  const routes = await kernel.routes(4, { dev: DEVICE });
  return routes.filter(({ dst }) => dst.endsWith("/24")).length === peers;
}

/** Neighbours and forwarding entries. */
async function hasEntries({ kernel, peers }: Site): Promise<boolean> {
  const neighbours = (await kernel.neighbours(4, DEVICE)).filter(({ mac }) => mac?.startsWith("0a:58:"));
  if (neighbours.length !== peers) return false;
  return (await kernel.fdb(DEVICE)).filter(({ mac }) => mac.startsWith("0a:58:")).length === peers;
}
