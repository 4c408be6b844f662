import { describe, expect, test } from "bun:test";
import { concerns, listenForBackend } from "../../../core/dataplane/active-notices.ts";
import { parsePrefix } from "../../../core/net/prefix.ts";
import { type Kernel, type Notice, ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import type { LinkState, RouteState } from "../../../core/netlink/objects.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "../observe/recording-log.ts";

const networks = ["10.5.0.0/16", "fd00:5::/32"].flatMap((text) => parsePrefix(text) ?? []);
const concern = { devices: new Set(["flannel-wg"]), external: "eth0", networks };

const link = (name: string): LinkState => ({
  name,
  index: 7,
  mtu: 1420,
  up: true,
  running: true,
  loopback: false,
});
const linkNotice = (name: string): Notice => ({ kind: "link", action: "delete", link: link(name) });
const routeNotice = (change: Partial<RouteState>): Notice => ({
  kind: "route",
  action: "delete",
  route: {
    family: 4,
    dst: "10.5.0.0/16",
    onlink: false,
    metric: 0,
    protocol: ROUTE_PROTOCOL,
    type: 1,
    scope: 253,
    dead: false,
    ...change,
  },
});

describe("what concerns a backend", () => {
  test("are its devices and the external interface", () => {
    expect(
      ["flannel-wg", "eth0", "eth1", "flannel.1"].map((name) => concerns(linkNotice(name), concern)),
    ).toEqual([true, true, false, false]);
  });

  test("are addresses on its devices", () => {
    const on = (dev: string): Notice => ({
      kind: "address",
      action: "delete",
      address: {
        dev,
        family: 4,
        address: "10.5.1.0/32",
        scope: 0,
        deprecated: false,
        temporary: false,
        tentative: false,
        permanent: true,
      },
    });
    expect([concerns(on("flannel-wg"), concern), concerns(on("eth0"), concern)]).toEqual([true, false]);
  });

  test("are routes of the cluster's networks with our mark or on its devices, guards among them", () => {
    const told = (change: Partial<RouteState>) => concerns(routeNotice(change), concern);
    expect(told({ dev: "flannel-wg" })).toBe(true);
    expect(told({ type: 6 })).toBe(true);
    expect(told({ dst: "10.5.3.0/24", dev: "eth0" })).toBe(true);
    expect(told({ dst: "10.5.3.0/24", dev: "flannel-wg", protocol: 3 })).toBe(true);
    expect(told({ dst: "10.5.3.0/24", dev: "cni0", protocol: 2 })).toBe(false);
    expect(told({ dst: "10.6.0.0/16", dev: "flannel-wg" })).toBe(false);
    expect(told({ dst: "fd00:5::/32", family: 6, type: 6, dev: "lo" })).toBe(true);
  });

  test("without devices is the external interface alone", () => {
    const bare = { ...concern, devices: new Set<string>() };
    expect(["eth0", "flannel.1"].map((name) => concerns(linkNotice(name), bare))).toEqual([true, false]);
    expect(concerns(routeNotice({ dev: "eth0" }), bare)).toBe(false);
  });

  test("is no neighbour and no forwarding entry", () => {
    const notice: Notice = {
      kind: "neighbour",
      action: "put",
      neighbour: { dev: "flannel-wg", ip: "10.5.2.0", state: 2 },
    };
    expect(concerns(notice, concern)).toBe(false);
  });
});

describe("listening", () => {
  /** A kernel that tells what it is given, and stops telling where it is given an error. */
  function fakeKernel() {
    const queue: (readonly Notice[] | Error)[] = [];
    let subscriptions = 0;
    const kernel: Pick<Kernel, "notices"> = {
      async *notices(signal) {
        subscriptions++;
        while (!signal.aborted) {
          const next = queue.shift();
          if (next instanceof Error) throw next;
          if (next) yield next;
          else await Bun.sleep(5);
        }
      },
    };
    return { kernel, queue, subscriptions: () => subscriptions };
  }

  async function listen(fake: ReturnType<typeof fakeKernel>, log = new RecordingLog()) {
    const controller = new AbortController();
    let calls = 0;
    const listening = listenForBackend({
      kernel: fake.kernel,
      log,
      signal: controller.signal,
      concern,
      disturbed: () => calls++,
    });
    return {
      log,
      calls: () => calls,
      async [Symbol.asyncDispose]() {
        controller.abort();
        await listening;
      },
    };
  }

  test("a burst of notices is one call; what concerns nobody is none", async () => {
    const fake = fakeKernel();
    await using listener = await listen(fake);
    fake.queue.push([linkNotice("eth1")], [linkNotice("flannel-wg"), routeNotice({})], [routeNotice({})]);
    await until(() => listener.calls() === 1, { message: "the call" });
    fake.queue.push([linkNotice("eth1")], [linkNotice("flannel-wg")]);
    await until(() => listener.calls() === 2, { message: "the second call" });
  });

  test("after notices were lost the backend is asked, and listening goes on", async () => {
    const fake = fakeKernel();
    await using listener = await listen(fake);
    fake.queue.push(new Fault("NETLINK_OVERRUN", "notices were lost"));
    await until(() => listener.calls() === 1, { message: "the call after the loss" });
    expect(fake.subscriptions()).toBe(2);
    fake.queue.push([linkNotice("flannel-wg")]);
    await until(() => listener.calls() === 2, { message: "the call after that" });
    expect(listener.log.lines.map(({ message }) => message)).toEqual([
      "kernel notices were lost; listening anew and asking the backend",
    ]);
  });

  test("ends with its signal", async () => {
    const fake = fakeKernel();
    const listener = await listen(fake);
    await listener[Symbol.asyncDispose]();
    expect(listener.calls()).toBe(0);
  });
});
