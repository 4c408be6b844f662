import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { CloudBackend, CloudReading, HostFacts } from "flannel/sdk";
import plugin from "../../backends/aws-vpc/index.ts";
import { describeChange } from "../../core/dataplane/cloud/describe.ts";
import { planCloud } from "../../core/dataplane/cloud/plan.ts";
import { CloudTables, type Look } from "../../core/dataplane/cloud/tables.ts";
import { parsePrefix } from "../../core/net/prefix.ts";
import { silentLog } from "../../core/observe/log.ts";
import { Ec2Api } from "../lab/cloud/aws/ec2-api.ts";
import { Imds } from "../lab/cloud/aws/metadata.ts";
import type { StateRoute } from "../lab/cloud/aws/vpc-state.ts";
import { problems } from "../lab/cloud/listener.ts";

const SELF = "eni-0000000000000001";
const OTHER = "eni-0000000000000002";
const CREATED = { State: "active", Origin: "CreateRoute" } as const;
const ranges = [
  { network: parsePrefix("10.244.0.0/16")!, subnetLen: 24 },
  { network: parsePrefix("fd00:10:244::/48")!, subnetLen: 64 },
];

const facts: HostFacts = {
  external: { name: "eth0", index: 2, mtu: 9001, ipv4: "192.0.2.1", ipv6: "2001:db8::1" },
  links: {},
  routes: [],
};

let api: Ec2Api;
let imds: Imds;
const saved = { ...process.env };

beforeEach(() => {
  api = new Ec2Api();
  const common = { instance: "i-1", addresses6: [], sourceDestCheck: true };
  api.vpc.interfaces.push(
    { ...common, id: "eni-0aaa", subnet: "subnet-0", addresses: ["198.51.100.1"] },
    { ...common, id: SELF, subnet: "subnet-1", addresses: ["198.51.100.2", "192.0.2.1"] },
    { ...common, instance: "i-2", id: OTHER, subnet: "subnet-1", addresses: ["192.0.2.2"] },
  );
  imds = Imds.local({ instanceId: "i-1", region: "eu-west-1", keys: () => api.keys });
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  process.env.AWS_ENDPOINT_URL_EC2 = api.url;
  process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT = imds.url;
  problems.length = 0;
});

afterEach(async () => {
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  Object.assign(process.env, saved);
  await api[Symbol.asyncDispose]();
  await imds[Symbol.asyncDispose]();
  expect(problems).toEqual([]);
});

function configure(raw: Readonly<Record<string, unknown>>): CloudBackend {
  const result = plugin.options["~standard"].validate(raw);
  if (result instanceof Promise || result.issues) throw new Error(JSON.stringify(result));
  const families = { ipv4: true, ipv6: true };
  const backend = plugin.configure({ options: result.value, families, networks: {}, nodeId: "n" });
  if (backend.mode !== "cloud") throw new Error(backend.mode);
  return backend;
}

async function reach(
  raw: Readonly<Record<string, unknown>> = {},
  own: readonly string[] = ["10.244.1.0/24"],
): Promise<Look> {
  const host = { log: silentLog, signal: new AbortController().signal };
  const tables = new CloudTables({ backend: configure(raw), host, log: silentLog, timeout: 30_000 });
  return tables.reach(facts, { own, ranges });
}

/** What a read gives, without the credentials and pages on the way. */
async function reading(raw: Readonly<Record<string, unknown>> = {}): Promise<CloudReading> {
  const backend = configure(raw);
  await backend.discover({ log: silentLog, signal: new AbortController().signal }, facts);
  return backend.read();
}

const codes = ({ findings }: Look) => findings.map(({ finding }) => finding.code);
const hasRoute = (routes: readonly StateRoute[], dst: string) =>
  routes.some(
    (route) =>
      (route.DestinationCidrBlock ?? route.DestinationIpv6CidrBlock) === dst &&
      route.NetworkInterfaceId === SELF,
  );
const refusal = async (work: Promise<unknown>) =>
  work.then(
    () => "no refusal",
    (error: Error & { kind?: string; fix?: string }) => `${error.kind}: ${error.message} (${error.fix})`,
  );

describe("which table", () => {
  test("the one of the interface's subnet", async () => {
    const main = api.vpc.addTable("rtb-0main", { main: true });
    const own = api.vpc.addTable("rtb-0own", { subnets: ["subnet-1"] });
    await reach();
    expect([hasRoute(main.routes, "10.244.1.0/24"), hasRoute(own.routes, "10.244.1.0/24")]).toEqual([
      false,
      true,
    ]);
  });

  test("the main one of the VPC where the subnet has none", async () => {
    const main = api.vpc.addTable("rtb-0main", { main: true });
    await reach();
    expect(hasRoute(main.routes, "10.244.1.0/24")).toBe(true);
  });

  test("none at all is told with the place to make one", async () => {
    expect(await refusal(reach())).toMatch(/missing: subnet-1 has no route table.*RouteTableID/);
  });

  test("one by id, several by id, over pages", async () => {
    const tables = ["rtb-01", "rtb-02", "rtb-03", "rtb-04", "rtb-05"].map((id) => api.vpc.addTable(id));
    await reach({ RouteTableID: "rtb-01" });
    expect(tables.map(({ routes }) => hasRoute(routes, "10.244.1.0/24"))).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
    await reach({ RouteTableID: ["rtb-02", "rtb-03", "rtb-04", "rtb-05"] });
    expect(tables.every(({ routes }) => hasRoute(routes, "10.244.1.0/24"))).toBe(true);
  });

  test("by tags, over pages; none with the tags is told", async () => {
    const tagged = ["rtb-01", "rtb-02", "rtb-03"].map((id) =>
      api.vpc.addTable(id, { tags: { flannel: "yes" } }),
    );
    const bare = api.vpc.addTable("rtb-04", { tags: { flannel: "no" } });
    await reach({ RouteTableFilter: ["tag:flannel=yes"] });
    expect(tagged.every(({ routes }) => hasRoute(routes, "10.244.1.0/24"))).toBe(true);
    expect(hasRoute(bare.routes, "10.244.1.0/24")).toBe(false);
    expect(await refusal(reach({ RouteTableFilter: ["tag:a=b", "tag:flannel=yes"] }))).toContain(
      "no route table",
    );
  });

  test("a wrong id is told as the cloud's", async () => {
    expect(await refusal(reach({ RouteTableID: "rtb-0wrong" }))).toMatch(
      /missing: InvalidRouteTableID.NotFound.*RouteTableID/,
    );
  });
});

describe("routes", () => {
  test("of both families, with the source/destination check off; a second look calls nothing that changes", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    const own = ["10.244.1.0/24", "fd00:10:244:1::/64"];
    expect((await reach({}, own)).complete).toBe(true);
    expect(own.every((dst) => hasRoute(table.routes, dst))).toBe(true);
    expect(api.vpc.interfaces.map(({ sourceDestCheck }) => sourceDestCheck)).toEqual([true, false, true]);
    expect(api.changes).toEqual(["ModifyNetworkInterfaceAttribute", "CreateRoute", "CreateRoute"]);
    expect((await reach({}, own)).applied).toEqual([]);
    expect(api.changes).toHaveLength(3);
  });

  test("of another node are replaced in place, never deleted and made anew", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    table.routes.push({ ...CREATED, DestinationCidrBlock: "10.244.1.0/24", NetworkInterfaceId: OTHER });
    await reach();
    expect(hasRoute(table.routes, "10.244.1.0/24")).toBe(true);
    expect(api.changes).toEqual(["ModifyNetworkInterfaceAttribute", "ReplaceRoute"]);
  });

  test("that lead into a black hole stay until the cluster agrees that their node is gone", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    const hole = { State: "blackhole", Origin: "CreateRoute", NetworkInterfaceId: "eni-0gone" } as const;
    table.routes.push({ ...hole, DestinationCidrBlock: "10.244.7.0/24" });
    await reach();
    expect(table.routes.map((route) => route.DestinationCidrBlock)).toContain("10.244.7.0/24");
    expect(api.changes).not.toContain("DeleteRoute");
  });

  test("of a former subnet of this node go", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    await reach({}, ["10.244.9.0/24"]);
    await reach({}, ["10.244.1.0/24"]);
    expect([hasRoute(table.routes, "10.244.9.0/24"), hasRoute(table.routes, "10.244.1.0/24")]).toEqual([
      false,
      true,
    ]);
  });

  test("of others with our very subnet stay, and are told", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    const peering: StateRoute = {
      ...CREATED,
      DestinationCidrBlock: "10.244.1.0/24",
      VpcPeeringConnectionId: "pcx-1",
    };
    table.routes.push(peering);
    const look = await reach();
    expect(table.routes).toContain(peering);
    expect(codes(look)).toEqual(["CLOUD_ROUTE_CONFLICT"]);
    expect(api.changes).not.toContain("CreateRoute");
  });

  test("little room is told before it is used up", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    for (let n = 0; n < 43; n++)
      table.routes.push({ ...CREATED, DestinationCidrBlock: `172.16.${n}.0/24`, GatewayId: "igw-1" });
    expect(codes(await reach())).toEqual([]);
    table.routes.push({ ...CREATED, DestinationCidrBlock: "172.17.0.0/24", GatewayId: "igw-1" });
    const look = await reach();
    expect(codes(look)).toEqual(["CLOUD_TABLE_NEARLY_FULL"]);
    expect(look.findings[0]?.finding.text).toContain("45 IPv4 routes");
    expect(look.complete).toBe(true);
  });
});

describe("trouble", () => {
  test("a forbidden source/destination check is told with the console place; the route is made all the same", async () => {
    const table = api.vpc.addTable("rtb-01", { main: true });
    api.forbidden.add("ModifyNetworkInterfaceAttribute");
    const { findings } = await reach();
    expect(hasRoute(table.routes, "10.244.1.0/24")).toBe(true);
    expect(findings[0]?.finding).toMatchObject({ code: "CLOUD_DENIED", severity: "error" });
    expect(findings[0]?.finding.fix).toContain("Change source/dest. check");
    expect(findings[0]?.finding.text).not.toContain("Encoded");
  });

  test("an address the instance does not have is told", async () => {
    api.vpc.interfaces.splice(1, 1);
    expect(await refusal(reach())).toContain("no network interface of i-1 has 192.0.2.1 or 2001:db8::1");
  });

  test("metadata of version 1 only by option", async () => {
    api.vpc.addTable("rtb-01", { main: true });
    imds.old = true;
    process.env.AWS_ACCESS_KEY_ID = api.keys.accessKeyId;
    process.env.AWS_SECRET_ACCESS_KEY = api.keys.secretAccessKey;
    process.env.AWS_SESSION_TOKEN = api.keys.sessionToken;
    expect(await refusal(reach())).toMatch(/metadata: status 404.*AllowIMDSv1/);
    expect((await reach({ AllowIMDSv1: true })).complete).toBe(true);
  });

  test("metadata of version 1 by option where a token cannot be had in time", async () => {
    api.vpc.addTable("rtb-01", { main: true });
    imds.far = true;
    process.env.AWS_ACCESS_KEY_ID = api.keys.accessKeyId;
    process.env.AWS_SECRET_ACCESS_KEY = api.keys.secretAccessKey;
    process.env.AWS_SESSION_TOKEN = api.keys.sessionToken;
    expect((await reach({ AllowIMDSv1: true })).complete).toBe(true);
  });

  test("the region is the SDK's where it tells one", async () => {
    api.vpc.addTable("rtb-01", { main: true });
    process.env.AWS_REGION = "us-east-2";
    expect((await reach()).place.summary).toStartWith("us-east-2 ");
  });

  test("wrong keys are told, and not shown", async () => {
    process.env.AWS_ACCESS_KEY_ID = "AKIAWRONG";
    process.env.AWS_SECRET_ACCESS_KEY = "s3cr3t-Hunter2";
    const text = await refusal(reach());
    expect(text).toMatch(/^credentials: AuthFailure/);
    expect(text).not.toContain("Hunter2");
  });
});

test("what a read gives is plain data, and gateways, endpoints and prefix lists in it are foreign", async () => {
  const table = api.vpc.addTable("rtb-01", { main: true });
  table.routes.push(
    { ...CREATED, DestinationPrefixListId: "pl-1", GatewayId: "vpce-1" },
    { ...CREATED, DestinationCidrBlock: "0.0.0.0/0", GatewayId: "igw-1" },
    { ...CREATED, DestinationCidrBlock: "10.244.3.0/24", NetworkInterfaceId: OTHER },
    {
      DestinationCidrBlock: "10.244.4.0/24",
      NetworkInterfaceId: OTHER,
      State: "active",
      Origin: "CreateRouteTable",
    },
  );
  const read = await reading();
  expect(structuredClone(read)).toStrictEqual(read);
  expect(read.tables[0]?.routes.map(({ dst, kind }) => `${dst} ${kind}`)).toEqual([
    "192.0.2.0/24 foreign",
    "pl-1 foreign",
    "0.0.0.0/0 foreign",
    "10.244.3.0/24 node",
    "10.244.4.0/24 foreign",
  ]);
  const plan = planCloud(read, { self: SELF, own: ["10.244.1.0/24"], ranges });
  expect(plan.changes.map(describeChange)).toEqual([
    `set source/destination check of ${SELF} to off (is on)`,
    `create 10.244.1.0/24 → ${SELF} in rtb-01`,
  ]);
});
