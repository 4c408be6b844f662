import { expect, test } from "bun:test";
import type { Backend, DeclarativeBackend, HostFacts, Peer } from "flannel/sdk";
import plugin from "./index.ts";

const facts: HostFacts = {
  external: { name: "eth0", index: 2, mtu: 1500, ipv4: "192.0.2.1", publicIP: "192.0.2.1" },
  links: {},
  routes: [{ dst: "192.0.2.0/24", dev: "eth0" }],
};

const peer: Peer = {
  key: "10.5.2.0-24&fd00:5:2::-64",
  backendType: "template",
  ipv4: { subnet: "10.5.2.0/24", publicIP: "192.0.2.2" },
  ipv6: { subnet: "fd00:5:2::/64", publicIP: "2001:db8::2" },
};

const common = {
  families: { ipv4: true, ipv6: true },
  networks: { ipv4: "10.5.0.0/16", ipv6: "fd00:5::/48" },
  nodeId: "node-1",
};

async function configure(raw: unknown): Promise<DeclarativeBackend> {
  const result = await plugin.options["~standard"].validate(raw);
  if (result.issues) throw new Error(result.issues.map((issue) => issue.message).join("; "));
  const backend: Backend = plugin.configure({ ...common, options: result.value });
  if (backend.mode !== "declarative") throw new Error("not declarative");
  return backend;
}

test("reaches a peer by one route per family", async () => {
  const backend = await configure({});
  expect(backend.peer(peer, facts)).toEqual({
    objects: [
      { kind: "route", dst: "10.5.2.0/24", via: "192.0.2.2", dev: "eth0" },
      { kind: "route", dst: "fd00:5:2::/64", via: "2001:db8::2", dev: "eth0" },
    ],
  });
});

test("Metric goes into every route", async () => {
  const backend = await configure({ Metric: 50 });
  expect(backend.peer(peer, facts).objects.map((route) => "metric" in route && route.metric)).toEqual([
    50, 50,
  ]);
});

test.each([-1, 1.5, 2 ** 32, "50", null])("refuses Metric %p", async (metric) => {
  await expect(configure({ Metric: metric })).rejects.toThrow(/must/);
});

test("leaves peers of another backend alone and says so", async () => {
  const backend = await configure({});
  expect(backend.peer({ ...peer, backendType: "vxlan" }, facts)).toEqual({
    objects: [],
    problems: ['uses backend "vxlan", this node uses "template"'],
  });
});

test("pods get the MTU of the underlay", async () => {
  expect((await configure({})).mtu(facts)).toBe(1500);
});

test("check names the family that has no address", async () => {
  const input = { ...common, options: { Metric: 0 }, facts };
  const findings = (await plugin.check?.(input)) ?? [];
  expect(findings.map(({ code, severity }) => ({ code, severity }))).toEqual([
    { code: "TEMPLATE_NO_ADDRESS", severity: "error" },
  ]);
  expect(findings[0]?.text).toContain("IPv6");
});

test("everything it says is plain data", async () => {
  const backend = await configure({ Metric: 7 });
  const said = [
    backend.links(facts),
    backend.publish(facts),
    backend.own({ subnets: {} }, facts),
    backend.peer(peer, facts),
  ];
  expect(structuredClone(said)).toEqual(said);
});
