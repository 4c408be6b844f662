/**
 * The file that tells container run times their subnet: its bytes, its guard, and what a former one decides.
 *
 *   h1 ── ext0 ── switch + etcd ── ext0 ── h2
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { statSync, unlinkSync, writeFileSync } from "node:fs";
import { Cluster, daemonSubnet, networkConfig } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { ownLease, storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;
let [h1, h2]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual", config: networkConfig("v4") });
  [h1, h2] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

async function ready(host: Host, ...flags: string[]): Promise<Daemon> {
  const daemon = Daemon.start(host, { endpoints: endpointFor(host), flags });
  try {
    await daemon.ready;
    return daemon;
  } catch (error) {
    await daemon[Symbol.asyncDispose]();
    throw error;
  }
}

test(
  "it has upstream's bytes, comes back when it is deleted or spoilt, and is not touched by a restart",
  async () => {
    const path = h1!.subnetFile;
    const read = () => Bun.file(path).text();
    {
      await using daemon = await ready(h1!);
      const subnet = /^(10\.244\.\d+)\.0-24$/.exec((await ownLease(cluster, h1!))!.key)![1];
      const text = `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${subnet}.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n`;
      expect(await read()).toBe(text);
      expect(statSync(path).mode & 0o7777).toBe(0o644);
      unlinkSync(path);
      await until(async () => (await read()) === text, { message: "the deleted file is written again" });
      writeFileSync(path, "FLANNEL_MTU=9000\n");
      await until(async () => (await read()) === text, { message: "the spoilt file is written again" });
      await daemon.stop();
    }
    const { ino, mtimeMs } = statSync(path);
    await using daemon = await ready(h1!);
    await daemon.stop();
    expect(statSync(path)).toMatchObject({ ino, mtimeMs });
  },
  TIMEOUT,
);

test(
  "it has both families in a dual-stack cluster, and FLANNEL_IPMASQ as the flag says",
  async () => {
    await cluster.etcd.ctl(
      "put",
      "/dual/config",
      JSON.stringify(networkConfig("dual", { Type: "vxlan", VNI: 9 })),
    );
    const file = `${h2!.directory}/dual.env`;
    await using daemon = await ready(h2!, "--etcd-prefix=/dual", `--subnet-file=${file}`, "--ip-masq");
    const [lease] = await storedLeases(cluster, "/dual");
    const [, v4, v6] = /^(10\.244\.\d+)\.0-24&(fd00:10:244:[0-9a-f]+)::-64$/.exec(lease!.key)!;
    expect(await Bun.file(file).text()).toBe(
      `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${v4}.1/24\nFLANNEL_IPV6_NETWORK=fd00:10:244::/48\n` +
        `FLANNEL_IPV6_SUBNET=${v6}::1/64\nFLANNEL_MTU=1430\nFLANNEL_IPMASQ=true\n`,
    );
    await daemon.stop();
  },
  TIMEOUT,
);

/** The subnet that the files of the next test name. */
const [PREVIOUS, ANOTHER] = [50, 51].map((n) => `${daemonSubnet(n).replace(/0$/, "1")}/24`);

test.each<[name: string, previous: string | Uint8Array, decides: boolean]>([
  [
    "as it was written",
    `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${PREVIOUS}\nFLANNEL_MTU=1450\n`,
    true,
  ],
  [
    "quotes, export, CRLF and junk",
    `junk\r\nexport FLANNEL_SUBNET="${PREVIOUS}"\r\n=\r\nFLANNEL_MTU=x\r\n`,
    true,
  ],
  [
    "bad entries beside a good one",
    `FLANNEL_SUBNET=${PREVIOUS},not-a-cidr\nFLANNEL_NETWORK=not-a-cidr\n`,
    true,
  ],
  ["noise", Uint8Array.from({ length: 4096 }, (_, n) => (n * 7) % 256), false],
  ["nothing", "", false],
  ["two subnets", `FLANNEL_SUBNET=${PREVIOUS},${ANOTHER}\n`, false],
  ["a subnet outside the network", "FLANNEL_SUBNET=172.16.5.1/24\n", false],
])(
  "the file of the last run decides the subnet if it can, and is replaced if not: %s",
  async (_, previous, decides) => {
    const file = `${h2!.directory}/previous.env`;
    writeFileSync(file, previous);
    await using daemon = await ready(h2!, `--subnet-file=${file}`, "--subnet-lease-release-on-stop");
    const { key } = (await ownLease(cluster, h2!))!;
    if (decides) expect(key).toBe(`${daemonSubnet(50)}-24`);
    expect(key).toMatch(/^10\.244\.\d+\.0-24$/);
    expect(await Bun.file(file).text()).toBe(
      `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${key.replace("0-24", "1/24")}\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n`,
    );
    await daemon.stop();
  },
  TIMEOUT,
);
