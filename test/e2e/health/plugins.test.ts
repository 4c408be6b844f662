/**
 * What plugins can do to a daemon, one host for each kind of plugin: it says so, is not ready, goes on, and is ready
 * again when they behave.
 *
 *   h1 (declarative), h2 (active), h3 (cloud) ── ext0 ── switch + etcd
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, networkConfig } from "../../lab/cluster.ts";
import type { Host } from "../../lab/host.ts";
import { until } from "../../lab/until.ts";
import { askHttp } from "../ask.ts";
import { type Breakage, breakAndRepair, HEALTH_FLAG, type Subject, TIMEOUT } from "./readiness.ts";

type Plugin = "careless" | "unruly" | "cloudy";

let cluster: Cluster;
const subjects = new Map<Plugin, Subject>();

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 3, config: null });
  const plugins: readonly Plugin[] = ["careless", "unruly", "cloudy"];
  for (const [at, plugin] of plugins.entries()) await start(cluster.hosts[at]!, plugin);
  for (const subject of subjects.values()) await subject.daemon.ready;
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

/** The folder whose files tell the plugin of a host what to do wrong. */
const folderOf = (host: Host) => join(host.directory, "wrong");
const configKey = (plugin: Plugin) => `/${plugin}/config`;
const put = (key: string, value: object) => cluster.etcd.ctl("put", key, JSON.stringify(value));

function configOf(host: Host, plugin: Plugin) {
  return networkConfig("v4", { Type: plugin, Folder: folderOf(host) });
}

/** Drops the plugin in, and starts a daemon with a network of its own. */
async function start(host: Host, plugin: Plugin): Promise<void> {
  const dropIns = join(host.directory, "plugins");
  cpSync(join(import.meta.dir, "plugins", plugin), join(dropIns, plugin), { recursive: true });
  mkdirSync(folderOf(host));
  await put(configKey(plugin), configOf(host, plugin));
  const flags = [HEALTH_FLAG, `--plugin-dir=${dropIns}`, `--etcd-prefix=/${plugin}`];
  subjects.set(plugin, { host, daemon: cluster.startDaemon(host, { flags }) });
}

/** Breakages that are files of the plugin's folder. */
function told(plugin: Plugin, what: string, code: string, file: string, text = ""): Breakage {
  const path = () => join(folderOf(subjects.get(plugin)!.host), file);
  return { what, code, breakIt: () => writeFileSync(path(), text), repairIt: () => rmSync(path()) };
}

/** Each plugin has a daemon to itself, so that nobody waits for another's time-outs. */
describe.concurrent("a plugin", () => {
  const inTurn = async (plugin: Plugin, breakages: readonly Breakage[]) => {
    for (const breakage of breakages) await breakAndRepair(subjects.get(plugin)!, breakage);
  };

  test(
    "that plans nonsense",
    async () => {
      const nonsense = told("careless", "a plan that is none", "LOOP_RESTARTED", "plan-nonsense");
      const peer = { PublicIP: "192.0.2.77", BackendType: "careless" };
      await breakAndRepair(subjects.get("careless")!, {
        ...nonsense,
        breakIt: async () => {
          await nonsense.breakIt();
          await put("/careless/subnets/10.244.7.0-24", peer);
        },
        // It has to run well for 10 s.
        deadline: 30_000,
      });
    },
    TIMEOUT,
  );

  test(
    "that is unwell, fails, hangs, throws in a timer and does not stop",
    async () => {
      const subject = subjects.get("unruly")!;
      const hangs = told("unruly", "its first sync hangs", "NOT_SYNCED", "first-sync-hangs");
      await inTurn("unruly", [
        told("unruly", "it is unwell", "UNRULY_UNWELL", "unwell"),
        told("unruly", "it programs nothing", "DATAPLANE_REFUSED", "sync-fails"),
        {
          ...hangs,
          judged: true,
          breakIt: async () => {
            await hangs.breakIt();
            // What only a session anew takes over, with the subnet it has.
            await put(configKey("unruly"), {
              ...configOf(subject.host, "unruly"),
              SubnetMax: "10.244.220.0",
            });
          },
        },
        {
          ...told("unruly", "its timer throws", "STRAY_ERROR", "throw-in-timer"),
          // Once, which is forgotten after 30 s.
          repairIt: () => {},
          deadline: 45_000,
        },
      ]);
      const stopping = told("unruly", "it does not stop", "STOPPING", "stop-hangs");
      await stopping.breakIt();
      subject.daemon.signal("SIGTERM");
      const reasons = async () => JSON.parse((await askHttp(subject.host, "/readyz")).body).reasons;
      await until(
        async () => (await reasons()).some(({ code }: { code: string }) => code === stopping.code),
        {
          message: () => subject.daemon.tail(),
        },
      );
      await stopping.repairIt();
      expect(await subject.daemon.ended()).toMatchObject({ code: 0 });
    },
    TIMEOUT,
  );

  test(
    "of a cloud in which calls fail",
    async () => {
      const { daemon } = subjects.get("cloudy")!;
      const cloud = (word: string, code: string) => told("cloudy", word, code, "fault", word);
      await inTurn("cloudy", [
        cloud("denied", "CLOUD_DENIED"),
        cloud("credentials", "CLOUD_CREDENTIALS"),
        cloud("throttled", "CLOUD_THROTTLED"),
        cloud("missing", "CLOUD_NOT_FOUND"),
        cloud("full", "CLOUD_TABLE_FULL"),
        cloud("clock", "CLOUD_CLOCK"),
        cloud("metadata", "CLOUD_METADATA"),
        cloud("unreachable", "CLOUD_UNREACHABLE"),
        cloud("refused", "CLOUD_REFUSED"),
        cloud("taken", "CLOUD_ROUTE_CONFLICT"),
        // The table is read for 7.5 s before it is said.
        { ...cloud("forgets", "CLOUD_NOT_SETTLED"), deadline: 20_000 },
        cloud("hangs", "BACKEND_TIMEOUT"),
        { ...cloud("strays", "DATAPLANE_FAILING"), judged: true },
      ]);
      expect(daemon.running).toBe(true);
    },
    TIMEOUT,
  );
});
