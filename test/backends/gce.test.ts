import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { CloudBackend, HostFacts } from "flannel/sdk";
import plugin from "../../backends/gce/index.ts";
import { instanceOf, routeName, toRoute } from "../../backends/gce/route.ts";
import { CloudTables, type Look } from "../../core/dataplane/cloud/tables.ts";
import { parsePrefix } from "../../core/net/prefix.ts";
import { silentLog } from "../../core/observe/log.ts";
import { ComputeApi, ZONE } from "../lab/cloud/gce/compute-api.ts";
import { GceMetadata } from "../lab/cloud/gce/metadata.ts";
import { problems } from "../lab/cloud/listener.ts";

const OWN = "10.244.1.0/24";
const SELF = `${ZONE}/node-1`;
const ranges = [{ network: parsePrefix("10.244.0.0/16")!, subnetLen: 24 }];
const facts: HostFacts = {
  external: { name: "eth0", index: 2, mtu: 1460, ipv4: "192.0.2.1" },
  links: {},
  routes: [],
};
const NETWORK = "https://www.googleapis.com/compute/v1/projects/test-project/global/networks/cluster";
const ENVIRONMENT = [
  "GCE_METADATA_HOST",
  "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE",
  "GOOGLE_APPLICATION_CREDENTIALS",
];

let api: ComputeApi;
let metadata: GceMetadata;

beforeEach(() => {
  api = new ComputeApi();
  api.instances.set("node-1", true);
  api.instances.set("node-2", true);
  const token = () => api.token;
  metadata = GceMetadata.local({ name: "node-1", address: "192.0.2.1", network: "cluster", token });
  process.env.GCE_METADATA_HOST = metadata.host;
  process.env.CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE = api.url;
  problems.length = 0;
});

afterEach(async () => {
  for (const name of ENVIRONMENT) delete process.env[name];
  await api[Symbol.asyncDispose]();
  await metadata[Symbol.asyncDispose]();
  expect(problems).toEqual([]);
});

function reach(from: HostFacts = facts): Promise<Look> {
  const result = plugin.options["~standard"].validate({});
  if (result instanceof Promise || result.issues) throw new Error(JSON.stringify(result));
  const families = { ipv4: true, ipv6: false };
  const backend = plugin.configure({
    options: result.value,
    families,
    networks: {},
    nodeId: "n",
  }) as CloudBackend;
  const host = { log: silentLog, signal: new AbortController().signal };
  const tables = new CloudTables({ backend, host, log: silentLog, timeout: 30_000 });
  return tables.reach(from, { own: [OWN], ranges });
}

const codes = ({ findings }: Look) => findings.map(({ finding }) => `${finding.code}: ${finding.text}`);
const changes = () => api.calls.filter((call) => /insert|delete/.test(call));

describe("a change", () => {
  test("is an operation whose end is waited for", async () => {
    const look = await reach();
    expect(look).toMatchObject({ complete: true, findings: [] });
    expect(api.routes).toMatchObject([{ name: "flannel-10-244-1-0-24", destRange: OWN, priority: 1000 }]);
    expect(api.calls.filter((call) => call === "compute.globalOperations.get")).toHaveLength(2);
  });

  test("that ends with an error is told in the operation's words", async () => {
    api.endings.push({ code: "QUOTA_EXCEEDED", status: 403 });
    expect(codes(await reach())).toEqual([
      "CLOUD_TABLE_FULL: compute.routes.create: QUOTA_EXCEEDED: QUOTA_EXCEEDED",
    ]);
    api.endings.push({ code: "RESOURCE_OPERATION_RATE_EXCEEDED", status: 403 });
    expect(codes(await reach())[0]).toStartWith("CLOUD_DENIED");
    api.endings.push({ code: "INTERNAL_ERROR", status: 500 });
    expect(codes(await reach())[0]).toStartWith("CLOUD_UNREACHABLE");
    expect(api.routes).toEqual([]);
    expect((await reach()).complete).toBe(true);
  });

  test("of a route that leads to another instance is a removal and an insertion", async () => {
    const nextHopInstance = `projects/test-project/zones/${ZONE}/instances/node-2`;
    api.routes.push({
      kind: "compute#route",
      name: routeName(OWN),
      network: NETWORK,
      destRange: OWN,
      nextHopInstance,
    });
    expect((await reach()).complete).toBe(true);
    expect(changes()).toEqual(["compute.routes.delete", "compute.routes.insert"]);
  });

  test("whose name another network has already is told", async () => {
    const network = NETWORK.replace("cluster", "another");
    const nextHopInstance = `projects/test-project/zones/${ZONE}/instances/node-2`;
    api.routes.push({
      kind: "compute#route",
      name: routeName(OWN),
      network,
      destRange: OWN,
      nextHopInstance,
    });
    expect(codes(await reach())[0]).toMatch(/^CLOUD_REFUSED.*already exists/);
    expect(api.routes).toHaveLength(1);
  });
});

test("an instance without IP forwarding is told with the way to it", async () => {
  api.instances.set("node-1", false);
  const { findings } = await reach();
  expect(findings.map(({ finding }) => finding.code)).toEqual(["GCE_NO_IP_FORWARDING"]);
  expect(findings[0]?.finding.fix).toContain("--can-ip-forward");
});

test("in a Shared VPC the route is the host project's, and leads to the address of the instance", async () => {
  api.hostProject = "998877";
  await metadata[Symbol.asyncDispose]();
  const shared = { network: "cluster", networkProject: "998877", token: () => api.token };
  metadata = GceMetadata.local({ name: "node-1", address: "192.0.2.1", ...shared });
  process.env.GCE_METADATA_HOST = metadata.host;
  const look = await reach();
  expect(look).toMatchObject({ complete: true, findings: [], place: { self: "192.0.2.1" } });
  expect(look.place.summary).toContain("cluster of 998877");
  expect(api.routes).toMatchObject([{ name: routeName(OWN), nextHopIp: "192.0.2.1" }]);
  expect(api.routes[0]?.network).toEndWith("projects/998877/global/networks/cluster");
  expect((await reach()).applied).toEqual([]);
});

test("the quota is the project's: routes of other networks count", async () => {
  const network = NETWORK.replace("cluster", "another");
  for (let n = 0; n < 225; n++) {
    const destRange = `172.16.${n}.0/24`;
    api.routes.push({
      kind: "compute#route",
      name: `custom-${n}`,
      network,
      destRange,
      nextHopIp: "192.0.2.9",
    });
  }
  expect(codes(await reach())).toEqual([
    "CLOUD_TABLE_NEARLY_FULL: cluster has 226 IPv4 routes with this node's, 250 fit",
  ]);
});

test("an address that no interface has is told", async () => {
  const other = { ...facts, external: { ...facts.external, ipv4: "192.0.2.99" } };
  const refusal = await reach(other).then(
    () => "none",
    (error: Error) => error.message,
  );
  expect(refusal).toBe("no interface of node-1 has 192.0.2.99");
});

test("a token that is not valid any more is a matter of credentials", async () => {
  metadata = await (async () => {
    await metadata[Symbol.asyncDispose]();
    return GceMetadata.local({
      name: "node-1",
      address: "192.0.2.1",
      network: "cluster",
      token: () => "stale",
    });
  })();
  process.env.GCE_METADATA_HOST = metadata.host;
  const refusal = await reach().then(
    () => "none",
    (error: Error & { kind?: string }) => `${error.kind}: ${error.message}`,
  );
  expect(refusal).toStartWith("credentials: authError");
});

test("instances are the same under every spelling of their URL", () => {
  const spellings = [
    `projects/123456/zones/${ZONE}/instances/node-1`,
    `https://www.googleapis.com/compute/v1/projects/test-project/zones/${ZONE}/instances/node-1`,
    `https://compute.googleapis.com/compute/v1/projects/example.com:test/zones/${ZONE}/instances/node-1`,
  ];
  expect(new Set(spellings.map(instanceOf))).toEqual(new Set([SELF]));
});

test("only a route with the name of its destination is ours", () => {
  const base = { network: NETWORK, destRange: OWN, nextHopInstance: `projects/p/zones/${ZONE}/instances/x` };
  expect(toRoute({ ...base, name: routeName(OWN) }, "cluster")).toMatchObject({ kind: "node", marked: true });
  expect(toRoute({ ...base, name: "flannel-10-244-2-0-24" }, "cluster")).toMatchObject({ kind: "foreign" });
  const elsewhere = toRoute({ ...base, name: routeName(OWN) }, "another");
  expect(elsewhere).toMatchObject({ kind: "foreign", dst: `${OWN} in cluster` });
  // It counts: the quota is the project's.
  expect(elsewhere.uncounted).toBeUndefined();
});
