/**
 * What can go wrong with etcd, with the config and the lease in it, each broken on a running daemon, told with its code,
 * and repaired. etcd knows users: the daemon may do what its role permits.
 *
 *   h1 (flanneld) ── ext0 ─┬─ switch + etcd
 *   h2 (flanneld) ── ext0 ─┘  whose own etcd, behind a proxy, is overloaded
 */
import { afterAll, beforeAll, test } from "bun:test";
import { Cluster, networkConfig, PREFIX } from "../../lab/cluster.ts";
import type { Daemon } from "../../lab/daemon.ts";
import { EtcdServer } from "../../lab/etcd.ts";
import type { Host } from "../../lab/host.ts";
import { inNamespace } from "../../lab/in-namespace.ts";
import { RpcProxy } from "../../lab/rpc-proxy.ts";
import { ownLease } from "../leases.ts";
import { breakAndRepair, DEADLINE, HEALTH_FLAG, TIMEOUT, testBreakages } from "./readiness.ts";

const FLAGS = [HEALTH_FLAG, "--subnet-lease-ttl=6s", "--subnet-lease-renew-margin=3s"];
/** A lease that was just renewed takes its whole time to run out, ms. */
const RUN_OUT = 2 * DEADLINE;
const USER = "flannel";
const PASSWORD = "opensesame";

let cluster: Cluster;
let h1: Host;
let daemon: Daemon;
/** The daemon's key in etcd. */
let ownKey = "";

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2 });
  [h1] = cluster.hosts as [Host];
  await cluster.etcd.enableAuth(USER, PASSWORD, `${PREFIX}/`);
  daemon = cluster.startDaemon(h1, {
    flags: [...FLAGS, `--etcd-username=${USER}`],
    env: { FLANNELD_ETCD_PASSWORD: PASSWORD },
  });
  await daemon.ready;
  ownKey = `${PREFIX}/subnets/${(await ownLease(cluster, h1))?.key}`;
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

const ctl = (...words: string[]) => cluster.etcd.ctl(...words);
const run = (text: string) => h1.namespace.exec("sh", "-ec", text);
const put = (key: string, value: object) => ctl("put", key, JSON.stringify(value));
const other = (BackendType: string) => ({ PublicIP: "192.0.2.77", PublicIPv6: null, BackendType });

/** Makes etcd refuse writes as it does by itself for that reason; `etcdctl alarm disarm` ends it. */
async function alarm(kind: "NOSPACE" | "CORRUPT"): Promise<void> {
  const api = `${cluster.etcd.endpoint}/v3`;
  await cluster.switch.namespace.exec(
    "sh",
    "-ec",
    [
      `token=$(curl -sf ${api}/auth/authenticate -d '{"name":"root","password":"root"}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
      `curl -sf -H "Authorization: $token" ${api}/maintenance/alarm -d '{"action":"ACTIVATE","alarm":"${kind}"}'`,
    ].join("\n"),
  );
}

testBreakages(
  () => ({ host: h1, daemon }),
  [
    {
      what: "a bad config is stored",
      code: "CONFIG_REFUSED",
      breakIt: () => put(`${PREFIX}/config`, { Network: "10.244.0.0/33" }),
      repairIt: () => cluster.configure(networkConfig("v4")),
    },
    {
      what: "another node has taken the lease",
      code: "LEASE_CONFLICT",
      breakIt: () => put(ownKey, other("vxlan")),
      repairIt: () => ctl("del", ownKey),
    },
    {
      what: "another node claims part of the subnet",
      code: "PEER_REJECTED",
      breakIt: () => put(ownKey.replace(/24$/, "25"), other("host-gw")),
      repairIt: () => ctl("del", ownKey.replace(/24$/, "25")),
    },
    {
      what: "the device has another MAC, and another node has the lease that should say so",
      code: "LEASE_OUTDATED",
      breakIt: async () => {
        await put(ownKey, other("vxlan"));
        await run("ip link set flannel.1 address 02:00:00:00:00:01");
      },
      repairIt: () => ctl("del", ownKey),
    },
    {
      what: "etcd's disk is full when the lease has to be taken back",
      code: "ETCD_NO_SPACE",
      breakIt: async () => {
        await alarm("NOSPACE");
        await ctl("del", ownKey);
      },
      repairIt: () => ctl("alarm", "disarm"),
    },
    {
      what: "etcd finds its data corrupt when the lease has to tell another MAC",
      code: "ETCD_REQUEST",
      breakIt: async () => {
        await alarm("CORRUPT");
        await run("ip link set flannel.1 address 02:00:00:00:00:02");
      },
      repairIt: () => ctl("alarm", "disarm"),
    },
    {
      what: "the role may no longer read the leases",
      code: "ETCD_PERMISSION",
      breakIt: () => ctl("role", "revoke-permission", "flannel", "--prefix=true", `${PREFIX}/`),
      repairIt: () => ctl("role", "grant-permission", "flannel", "--prefix=true", "readwrite", `${PREFIX}/`),
    },
    {
      what: "the user has another password",
      code: "ETCD_AUTH",
      breakIt: () => cluster.etcd.password(USER, "another"),
      repairIt: () => cluster.etcd.password(USER, PASSWORD),
    },
    {
      what: "etcd is away",
      code: "ETCD_UNREACHABLE",
      breakIt: () => cluster.etcd.stop(),
      repairIt: () => cluster.etcd.spawn(),
    },
    {
      what: "etcd is away until the lease has run out",
      code: "LEASE_RENEWAL",
      breakIt: () => cluster.etcd.stop(),
      repairIt: () => cluster.etcd.spawn(),
      deadline: RUN_OUT,
    },
    {
      what: "etcd is away until the lease has run out, while the address of the host changes",
      code: "LEASE_LOST",
      judged: true,
      breakIt: async () => {
        await cluster.etcd.stop();
        await run(
          "ip address delete 192.0.2.1/24 dev ext0; ip address add 192.0.2.61/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
        );
      },
      repairIt: () => cluster.etcd.spawn(),
      deadline: RUN_OUT,
    },
  ],
);

test(
  "etcd has more to do than it can: ETCD_BUSY, until it is through",
  async () => {
    const h2 = cluster.hosts[1]!;
    await using etcd = await EtcdServer.start();
    await using proxy = await inNamespace(h2.namespace, () => RpcProxy.start(etcd.clientPort));
    await etcd.ctl("put", `${PREFIX}/config`, JSON.stringify(networkConfig("v4")));
    await using other = cluster.startDaemon(h2, { endpoints: proxy.endpoint, flags: FLAGS });
    await other.ready;
    proxy.words = "etcdserver: too many requests";
    await breakAndRepair(
      { host: h2, daemon: other },
      {
        what: "etcd is overloaded",
        code: "ETCD_BUSY",
        breakIt: () => {
          proxy.refuse = () => true;
          proxy.cut();
        },
        repairIt: () => {
          proxy.refuse = () => false;
        },
      },
    );
  },
  TIMEOUT,
);
