/**
 * What is wrong is refused in words, with exit code 1, and leaves nothing behind.
 *
 *   h1, h2 ── ext0 ── switch + etcd ── ext0 ── h3, h4
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../lab/certificates.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectRefusal, type Refusal } from "./refusal.ts";

const TIMEOUT = 60_000;
/** Stands for every secret: it must not show up in anything that is written. */
const SECRET = "s3cr3t-Hunter2";

let cluster: Cluster;
let [h1, h2, h3, h4]: Host[] = [];
/** The two refusals that take their time run beside all the others. */
const waits = new Map<string, Promise<Refusal>>();

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 4, family: "dual", config: networkConfig("v4") });
  [h1, h2, h3, h4] = cluster.hosts;
  const deadline = 55_000;
  await h4!.namespace.exec("sysctl", "-qw", "net.ipv6.conf.ext0.disable_ipv6=1");
  await putConfig("/bad/family", JSON.stringify(networkConfig("dual")));
  waits.set("a device that does not exist", expectRefusal(cluster, h3!, { iface: "eth7", deadline }));
  waits.set(
    "a family that it does not have",
    expectRefusal(cluster, h4!, { prefix: "/bad/family", deadline }),
  );
  for (const wait of waits.values()) wait.catch(() => {});
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

describe("flags", () => {
  test.each<[code: string, flags: string[], words: string]>([
    ["FLAG_UNKNOWN", ["--subnet-fil=/x"], "did you mean -subnet-file?"],
    ["FLAG_UNKNOWN", ["-zzz"], "flanneld -help lists all flags"],
    ["FLAG_INVALID", ["--ip-masq=maybe"], 'flag -ip-masq: "maybe" is neither true nor false'],
    ["FLAG_INVALID", ["--ip-masq", "false"], "a value of a switch is attached"],
    ["FLAG_INVALID", ["--subnet-lease-ttl=soon"], '"soon" is no duration'],
    ["FLAG_INVALID", ["--subnet-lease-ttl=1s"], "nearest legal value is 5s"],
    ["FLAG_INVALID", ["--subnet-lease-renew-margin=0"], "is below 1"],
    ["FLAG_INVALID", ["--subnet-lease-renew-margin=1440"], "is above 1439"],
    [
      "FLAG_INVALID",
      ["--subnet-lease-ttl=10s", "--subnet-lease-renew-margin=10s"],
      "is not less than the ttl",
    ],
    ["FLAG_INVALID", ["--healthz-port=http"], "is no whole number"],
    ["FLAG_INVALID", ["--healthz-port=70000"], "is above 65535"],
    ["FLAG_INVALID", ["--public-ip=192.0.2.300"], "is no IPv4 address"],
    ["FLAG_INVALID", ["--public-ip=fd00::1"], "is no IPv4 address"],
    ["FLAG_INVALID", ["--public-ipv6=192.0.2.1"], "is no IPv6 address"],
    ["FLAG_INVALID", ["--iface-can-reach=example"], "is no IP address"],
    ["FLAG_INVALID", ["--iface-regex=("], "is no regular expression"],
    ["FLAG_INVALID", ["--node-id=a b"], "is no identifier"],
    ["FLAG_INVALID", ["--etcd-endpoints=ftp://192.0.2.100"], "is no URL of the form http"],
    ["FLAG_INVALID", ["--etcd-endpoints="], "names no endpoint"],
    ["FLAG_INVALID", ["--etcd-endpoints=http://192.0.2.100/v2"], "has a path in a URL"],
    ["FLAG_INVALID", [`--etcd-endpoints=http://root:${SECRET}@192.0.2.100`], "has credentials in a URL"],
    ["FLAG_INVALID", ["--etcd-certfile=/x.pem"], "lacks its key"],
    ["FLAG_INVALID", ["--etcd-keyfile=/x.key"], "lacks its certificate"],
    ["FLAG_INVALID", ["--etcd-username=root"], "lacks its password"],
    ["FLAG_INVALID", ["--etcd-password", "a", SECRET], "put quotes around a value with blanks"],
    ["FLAG_INVALID", ["--log-format=xml"], "is none of auto, json, text"],
    ["FLAG_INVALID", ["--subnet-file="], "must not be empty"],
    ["FLAG_INVALID", ["--v"], "needs a value"],
    ["FLAG_INVALID", ["backends"], "the command comes first"],
    ["STORE_UNSUPPORTED", ["--kube-subnet-mgr"], "keeps leases in etcd only"],
  ])("%s %j", async (code, flags, words) => {
    expectWords(await expectRefusal(cluster, h1!, { flags }), code, words);
  });

  test("a bad value in the environment is told with the variable's name", async () => {
    const env = { FLANNELD_SUBNET_LEASE_TTL: "soon", FLANNELD_ETCD_PASSWORD: SECRET };
    const refusal = await expectRefusal(cluster, h1!, { env });
    expectWords(refusal, "FLAG_INVALID", 'variable FLANNELD_SUBNET_LEASE_TTL: "soon" is no duration');
  });

  test("all bad flags are told at once", async () => {
    const { output } = await expectRefusal(cluster, h1!, { flags: ["--public-ip=x", "--healthz-port=y"] });
    expect(output.match(/error FLAG_INVALID/g)).toHaveLength(2);
  });

  test("a command that does not exist", async () => {
    const run = await h1!.namespace.run([executable(), "bakends"]);
    expect(run).toMatchObject({ exitCode: 1, stdout: "" });
    expect(run.stderr).toContain("error COMMAND_UNKNOWN");
    expect(run.stderr).toContain("did you mean backends?");
  });
});

describe("the network config", () => {
  test.each<[config: string, words: string]>([
    ["", ":1:1: the document is empty"],
    ["{", '"{" of 1:1 is not closed'],
    ['{"Network": "10.244.0.0/16",}', '"," before "}"'],
    ["{'Network': '10.244.0.0/16'}", "use double quotes"],
    ["[]", "is no network config"],
    ["null", "is no network config"],
    ["{}", 'key "Network" is missing'],
    ['{"Network": 10}', 'key "Network": 10 must be text'],
    ['{"Network": "10.244.0.0"}', "lacks the prefix length"],
    ['{"Network": "10.244.0.0/33"}', "nearest legal value is 10.244.0.0/28"],
    ['{"Network": "10.244.0.0/29"}', "Network /29 is too small, at most /28"],
    ['{"Network": "0.0.0.0/0"}', "is the whole address space"],
    ['{"Network": "10.244.0.256/16"}', "an octet is above 255"],
    ['{"Network": "fd00:10:244::/48"}', "it belongs in IPv6Network"],
    ['{"Network": "10.244.0.0/16", "SubnetLen": "24"}', "must be a number without quotes"],
    ['{"Network": "10.244.0.0/16", "SubnetLen": 24.0}', "must be plain digits"],
    ['{"Network": "10.244.0.0/16", "SubnetLen": -1}', "must not be negative"],
    ['{"Network": "10.244.0.0/16", "SubnetLen": 31}', "nearest legal value is 30"],
    ['{"Network": "10.244.0.0/16", "SubnetLen": 17}', "nearest legal value is 18"],
    ['{"Network": "10.244.0.0/16", "SubnetMin": "10.245.0.0"}', 'key "SubnetMin"'],
    ['{"Network": "10.244.0.0/16", "SubnetMax": "10.244.9.1"}', "nearest legal value is 10.244.9.0"],
    [
      '{"Network": "10.244.0.0/16", "SubnetMin": "10.244.9.0", "SubnetMax": "10.244.8.0"}',
      "lies above the last subnet",
    ],
    ['{"Network": "10.244.0.0/16", "SubnetMin": "fd00::"}', "is an IPv6 address"],
    ['{"EnableIPv4": false}', "leaves both families off"],
    ['{"EnableIPv4": "false", "Network": "10.244.0.0/16"}', "must be true or false without quotes"],
    ['{"Network": "10.244.0.0/16", "EnableIPv6": true}', 'key "IPv6Network" is missing'],
    ['{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "10.244.0.0/16"}', "it belongs in Network"],
    ['{"Network": "10.244.0.0/16", "Backend": "vxlan"}', 'key "Backend": "vxlan" is no object'],
    ['{"Network": "10.244.0.0/16", "Backend": {}}', '"Type" is missing'],
    ['{"Network": "10.244.0.0/16", "Backend": {"Type": 5}}', "5 is no backend type"],
    ['{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": "1"}}', "VNI must be a whole number"],
    ['{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 16777216}}', "from 0 to 16777215"],
    [
      '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "Port": 70000}}',
      "Port must be a whole number",
    ],
    [
      '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "MTU": 5}}',
      "MTU must be a whole number from 646",
    ],
    [
      '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "DirectRouting": "yes"}}',
      "must be true or false",
    ],
  ])("%s", async (config, words) => {
    const prefix = "/bad/config";
    await putConfig(prefix, config);
    const refusal = await expectRefusal(cluster, h1!, { prefix });
    expectWords(refusal, "CONFIG_INVALID", words);
    expect(refusal.message).toMatch(/^etcd key \/bad\/config\/config:\d+:\d+: /);
  });

  test.each<[type: string, words: string]>([
    ["vxlna", "vxlan"],
    ["hostgw", "host-gw"],
    ["quantum", "alloc"],
  ])("a backend that does not exist: %s", async (type, words) => {
    const prefix = "/bad/type";
    await putConfig(prefix, JSON.stringify(networkConfig("v4", { Type: type })));
    const refusal = await expectRefusal(cluster, h1!, { prefix });
    expectWords(refusal, "BACKEND_UNKNOWN", type);
    expect(`${refusal.message} ${refusal.hint}`).toContain(words);
  });

  test("all faults of a config are told at once", async () => {
    const prefix = "/bad/many";
    await putConfig(prefix, '{"Network": "10.244.0.0/16", "SubnetLen": 31, "EnableIPv6": 1}');
    const { output } = await expectRefusal(cluster, h1!, { prefix });
    expect(output.match(/"code":"CONFIG_INVALID"/g)?.length).toBeGreaterThan(1);
  });

  test("config check says the same as the daemon", async () => {
    const run = await h1!.namespace.run([executable(), "config", "check", "-"], { input: '{"Network": 10}' });
    expect(run.exitCode).toBe(1);
    expect(run.stderr).toContain('error CONFIG_INVALID: standard input:1:13: key "Network": 10 must be text');
  });
});

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
    await putConfig(prefix, JSON.stringify(networkConfig("v4", { Type: "host-gw" })));
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
      await putConfig(prefix, JSON.stringify(networkConfig("v4", { Type: name })));
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
    await putConfig(prefix, JSON.stringify(networkConfig("v4", { Type: "open" })));
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
    await putConfig(prefix, JSON.stringify(networkConfig("v4", { Type: "vault", Token: SECRET })));
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

function expectWords(refusal: Refusal, code: string, words: string): void {
  expect(refusal).toMatchObject({ code });
  expect(`${refusal.message}\n${refusal.hint}`).toContain(words);
  expect(refusal.output).not.toContain(SECRET);
}

/** `--` since a value may begin with a dash; etcdctl reads an empty value only this way. */
async function putConfig(prefix: string, config: string): Promise<void> {
  await cluster.etcd.ctl("put", "--", `${prefix}/config`, config);
}

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
