/**
 * A network config that is wrong is refused in words that name place, key and value, and leaves nothing behind.
 *
 *   h1 ── ext0 ── switch + etcd
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectRefusal, expectWords, putConfig } from "./refusal.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;
let [h1]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 1, family: "dual", config: networkConfig("v4") });
  [h1] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

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
    await putConfig(cluster, prefix, config);
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
    await putConfig(cluster, prefix, JSON.stringify(networkConfig("v4", { Type: type })));
    const refusal = await expectRefusal(cluster, h1!, { prefix });
    expectWords(refusal, "BACKEND_UNKNOWN", type);
    expect(`${refusal.message} ${refusal.hint}`).toContain(words);
  });

  test("all faults of a config are told at once", async () => {
    const prefix = "/bad/many";
    await putConfig(cluster, prefix, '{"Network": "10.244.0.0/16", "SubnetLen": 31, "EnableIPv6": 1}');
    const { output } = await expectRefusal(cluster, h1!, { prefix });
    expect(output.match(/"code":"CONFIG_INVALID"/g)?.length).toBeGreaterThan(1);
  });

  test("config check says the same as the daemon", async () => {
    const run = await h1!.namespace.run([executable(), "config", "check", "-"], { input: '{"Network": 10}' });
    expect(run.exitCode).toBe(1);
    expect(run.stderr).toContain('error CONFIG_INVALID: standard input:1:13: key "Network": 10 must be text');
  });
});
