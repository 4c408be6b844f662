import { expect, test } from "bun:test";
import type { Explanation } from "../../../core/agent/explain.ts";
import type { StatusReport } from "../../../core/agent/status.ts";
import { requireRoot } from "../../../core/cli/commands/ask.ts";
import { renderExplanation } from "../../../core/cli/commands/explain.ts";
import { renderEntries } from "../../../core/cli/commands/journal.ts";
import { renderStatus } from "../../../core/cli/commands/status.ts";
import { renderPairs, renderSeconds } from "../../../core/cli/pairs.ts";

const starting: StatusReport = {
  version: "1.2.3",
  commit: "",
  pid: 7,
  startedAt: "2026-01-01T00:00:00.000Z",
  uptimeSeconds: 90,
  phase: "starting",
  ready: false,
  reasons: [{ code: "STARTING", subject: "", title: "t", text: "x", fix: "f" }],
  subnetFile: "/run/flannel/subnet.env",
  peers: { wanted: 0, programmed: 0, refused: 0, unusable: 0, rejected: 0 },
  objects: { wanted: 0, failing: 0 },
  findings: [],
  loops: [{ name: "status socket", restarts: 0 }],
};

test("a daemon that starts tells what is known", () => {
  expect(renderStatus(starting)).toBe(
    `STATE   not ready: STARTING
DAEMON  1.2.3, pid 7, up 90 s
PEERS   0 of 0 programmed
LOOPS   status socket
`,
  );
});

test("findings come with subject, age and what to do, the latter once for each", () => {
  const finding = {
    code: "PEER_REJECTED",
    severity: "error",
    title: "a lease is not routed to",
    text: "it overlaps",
    fix: "delete it",
    since: "2026-01-01T00:00:01.234Z",
  } as const;
  const text = renderStatus({
    ...starting,
    peers: { wanted: 9, programmed: 5, refused: 3, unusable: 1, rejected: 2 },
    loops: [{ name: "host", restarts: 2, overdueSeconds: 9 }],
    findings: [
      { ...finding, subject: "10.5.1.0-24" },
      { ...finding, subject: "10.5.2.0-24" },
    ],
  });
  expect(text).toContain("PEERS   5 of 9 programmed, 3 refused, 1 unusable, 2 rejected\n");
  expect(text).toContain("LOOPS   host (restarted 2 times, overdue for 9 s)\n");
  expect(text).toContain(
    "error     PEER_REJECTED  2026-01-01T00:00:01Z  a lease is not routed to (10.5.1.0-24): it overlaps\n",
  );
  expect(text).toEndWith("What to do:\n  PEER_REJECTED: delete it\n");
});

test("the whole node", () => {
  const text = renderStatus({
    ...starting,
    ready: true,
    reasons: [],
    commit: "abc",
    store: "etcd http://192.0.2.100:2379",
    node: { id: "me", bootId: "b" },
    interface: {
      name: "eth0",
      mtu: 1500,
      ipv4: "192.0.2.1",
      ipv6: "2001:db8::1",
      publicIP: "203.0.113.1",
      publicIPv6: "2001:db8::1",
      reason: "default route",
    },
    config: { source: "etcd key /coreos.com/network/config", revision: 3 },
    backend: { type: "vxlan", plugin: "vxlan", version: "1.0.0" },
    lease: { key: "10.5.1.0-24", subnets: { ipv4: "10.5.1.0/24" }, state: "held", origin: "reservation" },
  });
  expect(text).toBe(
    `STATE      ready
DAEMON     1.2.3 (abc), pid 7, up 90 s
NODE       me
INTERFACE  eth0 192.0.2.1 2001:db8::1, MTU 1500, published as 203.0.113.1 (default route)
STORE      etcd http://192.0.2.100:2379
CONFIG     etcd key /coreos.com/network/config, revision 3
BACKEND    vxlan (plugin vxlan 1.0.0)
LEASE      10.5.1.0-24, held, no end (a reservation), origin reservation
PEERS      0 of 0 programmed
LOOPS      status socket
`,
  );
});

test("what other nodes wrote does not reach the terminal as it is", () => {
  const clearScreen = "\u001b[2J";
  const explanation: Explanation = {
    address: "10.5.2.9",
    scope: "peer",
    text: "it lies in the subnet of another node",
    ok: false,
    lease: { key: "10.5.2.0-24" },
    node: { id: `evil${clearScreen}\nSTATE  everything is in place`, publicIP: "192.0.2.2" },
    backend: { type: `vx${clearScreen}`, data: { a: clearScreen } },
    objects: [{ command: `ip route replace ${clearScreen}`, error: `no${clearScreen}` }],
    problems: [`bad ${clearScreen}`],
    journal: [{ at: 0, kind: "peer", keys: [], text: `added ${clearScreen}\nfake` }],
  };
  const text = renderExplanation(explanation);
  expect(text).not.toContain("\u001b");
  expect(text.match(/^STATE/gm)).toHaveLength(1);
  expect(text).toContain("1970-01-01T00:00:00.000Z  peer  added \\u001b[2J\\u000afake\n");
  expect(renderEntries(explanation.journal).split("\n")).toHaveLength(2);
});

test.each([
  [0, "0 s"],
  [119.9, "119 s"],
  [120, "2 min"],
  [3_599, "59 min"],
  [3_661, "1 h 1 min"],
  [47 * 3_600 + 59, "47 h 0 min"],
  [90_061 * 2, "2 d 2 h"],
])("%p seconds are %s", (seconds, text) => {
  expect(renderSeconds(seconds)).toBe(text);
});

test("pairs without a value are left out", () => {
  expect(renderPairs([])).toBe("");
  expect(
    renderPairs([
      ["A", undefined],
      ["LONG", "x"],
      ["B", ""],
    ]),
  ).toBe("LONG  x\nB\n");
});

test("who is not root is told who it is", () => {
  expect(() => requireRoot("status", 0)).not.toThrow();
  expect(() => requireRoot("status", undefined)).not.toThrow();
  expect(() => requireRoot("status", 1000)).toThrow("flanneld status needs root, and this is uid 1000");
});
