import { expect, test } from "bun:test";
import { countRenewals, countRequests, differ, parseEtcdCounts } from "./etcd-metrics.ts";
import { joiner, peer } from "./leases.ts";
import { longestBlock, parseLoopBlocks } from "./loop-blocks.ts";
import { parseCpuSeconds, parseMemory, readCpuSeconds, readMemory } from "./process-usage.ts";
import { parsePrefixes } from "./route-count.ts";

test("CPU time is that of the process and its ended children, whatever the process is called", () => {
  const times = "12 34 5 6";
  const rest = "20 0 9 0 99 1 2 3";
  const stat = `42 (a) b) R 1 42 42 0 -1 4194304 100 0 0 0 ${times} ${rest}`;
  expect(parseCpuSeconds(stat)).toBeCloseTo(0.57, 9);
  expect(() => parseCpuSeconds("42 (x) R 1")).toThrow("not a stat line");
  expect(readCpuSeconds(process.pid)).toBeGreaterThan(0);
});

test("memory is told in megabytes", () => {
  const status = "Name:\tx\nVmRSS:\t    1000 kB\nRssAnon:\t     500 kB\nRssFile:\t 500 kB\n";
  expect(parseMemory(status)).toEqual({ rss: 1.024, anonymous: 0.512 });
  expect(() => parseMemory("Name:\tx\n")).toThrow("VmRSS");
  const { rss, anonymous } = readMemory(process.pid);
  expect(rss).toBeGreaterThan(anonymous);
});

test("routes are counted in the main table", () => {
  const text =
    "Basic info: size of leaf: 48 bytes.\nMain:\n\tLeaves: 9\n\tPrefixes:       7\nLocal:\n\tPrefixes: 3\n";
  expect(parsePrefixes(text)).toBe(7);
  expect(() => parsePrefixes("")).toThrow("no Prefixes");
});

const metrics = (keepAlive: number, ranges: number, events: number) => `
# TYPE grpc_server_msg_received_total counter
grpc_server_msg_received_total{grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} ${keepAlive}
grpc_server_msg_received_total{grpc_method="LeaseGrant",grpc_service="etcdserverpb.Lease",grpc_type="unary"} 2
grpc_server_msg_received_total{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} ${ranges}
grpc_server_msg_received_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 0
grpc_server_msg_sent_total{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 99
etcd_debugging_mvcc_events_total ${events}
`;

test("etcd's counters become requests, renewals and events of the time between", () => {
  const before = parseEtcdCounts(metrics(1, 10, 5));
  expect([...before.requests]).toEqual([
    ["Lease/LeaseKeepAlive", 1],
    ["Lease/LeaseGrant", 2],
    ["KV/Range", 10],
  ]);
  const between = differ(before, parseEtcdCounts(metrics(4, 10, 6)));
  expect([...between.requests]).toEqual([["Lease/LeaseKeepAlive", 3]]);
  expect([countRequests(between), countRenewals(between), between.events]).toEqual([3, 3, 1]);
});

test("a block of the event loop is the delay without what the machine made it wait", () => {
  const text = '{"end":1000,"late":30,"waited":10}\n{"end":2000,"late":8,"waited":12}\n{"end":3000,"la';
  const blocks = parseLoopBlocks(text);
  expect(blocks).toEqual([
    { begin: 970, end: 1000, blocked: 20 },
    { begin: 1992, end: 2000, blocked: 0 },
  ]);
  expect(longestBlock(blocks, 0, 970)).toBe(0);
  expect(longestBlock(blocks, 970, 5000)).toBe(20);
});

test("peers differ in everything that must not be shared, and look as flannel writes them", () => {
  const leases = [
    ...Array.from({ length: 20_000 }, (_, n) => peer(n)),
    ...Array.from({ length: 256 }, (_, n) => joiner(n)),
  ];
  const parsed = leases.map(({ value }) => JSON.parse(value));
  for (const of of [
    leases.map(({ key }) => key),
    parsed.map(({ PublicIP }) => PublicIP),
    parsed.map(({ BackendData }) => BackendData.VtepMAC),
  ]) {
    expect(new Set(of).size).toBe(leases.length);
  }
  expect(peer(300)).toEqual({
    subnet: "10.17.44.0/24",
    key: "10.17.44.0-24",
    value:
      '{"PublicIP":"172.16.1.44","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"0a:58:00:00:01:2c"}}',
  });
});
