/**
 * What is wrong with flags, variables and commands is refused in words, with exit code 1, and leaves nothing behind.
 *
 *   h1 ── ext0 ── switch + etcd
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectRefusal, expectWords, SECRET } from "./refusal.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;
let [h1]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 1, family: "dual", config: networkConfig("v4") });
  [h1] = cluster.hosts;
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
