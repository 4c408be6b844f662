/**
 * A host, files or a plugin that the daemon cannot work with are refused in words, and nothing is left behind.
 *
 *   h1 ── ext0 ── switch + etcd ── ext0 ── h2, h3, h4
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../lab/certificates.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectRefusal, expectWords, putConfig, type Refusal, SECRET } from "./refusal.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;
let [h1, h2, h3, h4]: Host[] = [];
/** The two refusals that take their time run beside all the others. */
const waits = new Map<string, Promise<Refusal>>();

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 4, family: "dual", config: networkConfig("v4") });
  [h1, h2, h3, h4] = cluster.hosts;
  const deadline = 55_000;
  await h4!.namespace.exec("sysctl", "-qw", "net.ipv6.conf.ext0.disable_ipv6=1");
  await putConfig(cluster, "/bad/family", JSON.stringify(networkConfig("dual")));
  waits.set("a device that does not exist", expectRefusal(cluster, h3!, { iface: "eth7", deadline }));
  waits.set(
    "a family that it does not have",
    expectRefusal(cluster, h4!, { prefix: "/bad/family", deadline }),
  );
  for (const wait of waits.values()) wait.catch(() => {});
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

describe("the host", () => {
  test("a process without CAP_NET_ADMIN", async () => {
    const file = wrapper(
      h1!,
      `exec setpriv --bounding-set -net_admin --inh-caps -net_admin ${executable()} "$@"`,
    );
    expectWords(await expectRefusal(cluster, h1!, { file }), "PRIVILEGE_MISSING", "CAP_NET_ADMIN");
  });

  test("a process that is not root", async () => {
    const copy = "/dev/shm/flanneld-unprivileged";
    copyFileSync(executable(), copy);
    chmodSync(copy, 0o755);
    const file = wrapper(h1!, `exec setpriv --reuid 65534 --regid 65534 --clear-groups ${copy} "$@"`);
    expectWords(await expectRefusal(cluster, h1!, { file }), "PRIVILEGE_MISSING", "CAP_NET_ADMIN");
    await Bun.file(copy).delete();
  });

  test("a subnet file that cannot be written", async () => {
    const folder = join(h1!.directory, "a-folder");
    mkdirSync(folder, { recursive: true });
    for (const path of ["/proc/flannel/subnet.env", `${executable()}/subnet.env`, folder, `${folder}/`]) {
      const refusal = await expectRefusal(cluster, h1!, { flags: ["--subnet-file", path] });
      expectWords(refusal, "SUBNET_FILE", path);
    }
  });

  test("a published address behind NAT with host-gw", async () => {
    const prefix = "/bad/nat";
    await putConfig(cluster, prefix, JSON.stringify(networkConfig("v4", { Type: "host-gw" })));
    const refusal = await expectRefusal(cluster, h1!, { prefix, flags: ["--public-ip=203.0.113.9"] });
    expectWords(refusal, "HOST_GW_NAT", "203.0.113.9");
  });

  test("a VNI that another device uses", async () => {
    await h2!.namespace.ip("link add foreign type vxlan id 1 dev ext0 dstport 8472");
    const refusal = await expectRefusal(cluster, h2!);
    expectWords(refusal, "LINK_CONFLICT", "foreign");
    await h2!.namespace.ip("link del foreign");
  });
});

describe("TLS files", () => {
  test(
    "that are missing or hold something else are refused by name",
    async () => {
      using authority = new CertificateAuthority();
      const { certFile, keyFile } = authority.issue("client");
      const other = authority.issue("other");
      const junk = join(authority.folder, "junk.pem");
      writeFileSync(junk, `-----BEGIN NOTHING-----\n${SECRET}\n-----END NOTHING-----\n`);
      const rows: [flags: string[], words: string][] = [
        [["--etcd-cafile=/nowhere/ca.pem"], "/nowhere/ca.pem"],
        [[`--etcd-cafile=${junk}`], junk],
        [[`--etcd-cafile=${authority.folder}`], authority.folder],
        [[`--etcd-certfile=/nowhere/c.pem`, `--etcd-keyfile=${keyFile}`], "/nowhere/c.pem"],
        [[`--etcd-certfile=${certFile}`, `--etcd-keyfile=${junk}`], junk],
        [[`--etcd-certfile=${certFile}`, `--etcd-keyfile=${other.keyFile}`], other.keyFile],
      ];
      for (const [flags, words] of rows) {
        const refusal = await expectRefusal(cluster, h1!, { endpoints: "https://192.0.2.100:2379", flags });
        expectWords(refusal, "ETCD_TLS_FILE", words);
      }
    },
    TIMEOUT,
  );
});

describe("a plugin that the config selects", () => {
  test.each<[name: string, source: string, words: string]>([
    ["throws", 'throw new Error("no licence");', "no licence"],
    ["unfinished", "export default {", "index.ts"],
    ["nothing", "export const x = 1;", "default"],
    ["shapeless", "export default { options: 1 };", "options"],
    ["hangs", "await new Promise(() => {}); export default {};", "ms"],
    ["spins", "for (;;) {}", "ms"],
  ])(
    "is refused when it is broken: %s",
    async (name, source, words) => {
      const root = pluginRoot(h1!, name, source);
      const prefix = "/bad/plugin";
      await putConfig(cluster, prefix, JSON.stringify(networkConfig("v4", { Type: name })));
      const refusal = await expectRefusal(cluster, h1!, {
        prefix,
        flags: [`--plugin-dir=${root}`],
        deadline: 20_000,
      });
      expectWords(refusal, "PLUGIN_FAILED", words);
      expect(refusal.message).toContain(name);
    },
    TIMEOUT,
  );

  test("is refused when anybody may write it, with the command that mends it", async () => {
    const root = pluginRoot(h1!, "open", "export default {};");
    chmodSync(join(root, "open/index.ts"), 0o666);
    const prefix = "/bad/plugin";
    await putConfig(cluster, prefix, JSON.stringify(networkConfig("v4", { Type: "open" })));
    const refusal = await expectRefusal(cluster, h1!, { prefix, flags: [`--plugin-dir=${root}`] });
    expectWords(refusal, "PLUGIN_UNTRUSTED", "chmod");
  });

  test("does not tell a secret option that it refuses", async () => {
    const root = pluginRoot(
      h1!,
      "vault",
      `import * as v from "valibot";
       export default { optionNames: ["Token"], options: v.object({ Token: v.pipe(v.string(), v.minLength(40)) }), configure() {} };`,
      { secrets: ["Token"] },
    );
    const prefix = "/bad/plugin";
    await putConfig(cluster, prefix, JSON.stringify(networkConfig("v4", { Type: "vault", Token: SECRET })));
    const refusal = await expectRefusal(cluster, h1!, { prefix, flags: [`--plugin-dir=${root}`] });
    expectWords(refusal, "CONFIG_INVALID", "Token");
  });
});

// Last but in time: their half minute has passed by now.
describe("an interface that does not come within half a minute", () => {
  test.each([
    ["a device that does not exist", "eth7"],
    ["a family that it does not have", "IPv6"],
  ])(
    "%s",
    async (name, words) => {
      const refusal = await waits.get(name)!;
      expectWords(refusal, "INTERFACE_NONE", words);
      expect(refusal.output.match(/waiting for an interface/g)).toHaveLength(1);
    },
    TIMEOUT,
  );
});

function wrapper(host: Host, line: string): string {
  const file = join(host.directory, "wrapper");
  writeFileSync(file, `#!/bin/sh\n${line}\n`);
  chmodSync(file, 0o755);
  return file;
}

function pluginRoot(
  host: Host,
  name: string,
  source: string,
  manifest: Record<string, unknown> = {},
): string {
  const root = join(host.directory, `plugins-${name}`);
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  chmodSync(root, 0o755);
  chmodSync(folder, 0o755);
  const document = {
    schema: 1,
    name,
    version: "1.0.0",
    api: [1],
    description: "broken",
    backends: [{ type: name, families: ["ipv4"], overhead: 0, stability: "experimental" }],
    main: "index.ts",
    ...manifest,
  };
  writeFileSync(join(folder, "plugin.json"), JSON.stringify(document), { mode: 0o644 });
  writeFileSync(join(folder, "index.ts"), source, { mode: 0o644 });
  return root;
}
