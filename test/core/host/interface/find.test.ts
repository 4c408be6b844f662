import { expect, test } from "bun:test";
import { findInterface } from "../../../../core/host/interface/find.ts";
import { kernelIn } from "../../../lab/in-namespace.ts";
import { Namespace } from "../../../lab/namespace.ts";
import { until } from "../../../lab/until.ts";
import { RecordingLog } from "../../observe/recording-log.ts";

/*  eth0 (veth, up, no address yet) ── far0, in one namespace */
async function setUp() {
  await using stack = new AsyncDisposableStack();
  const ns = stack.use(await Namespace.create("find"));
  await ns.ip("link add eth0 type veth peer name far0");
  await ns.ip("link set far0 up");
  await ns.ip("link set eth0 up");
  const kernel = stack.use(kernelIn(ns));
  const done = stack.move();
  return { ns, kernel, log: new RecordingLog(), [Symbol.asyncDispose]: () => done.disposeAsync() };
}

const wish = { iface: [], ifaceRegex: [], canReach: "" };
const families = { ipv4: true, ipv6: false };

test("waits for an address and a route that come late, and says once what it waits for", async () => {
  await using host = await setUp();
  const { kernel, log } = host;
  const finding = findInterface({ kernel, wish, families, log, signal: new AbortController().signal });
  await until(() => log.messages("warn").length === 1, { message: "the first line" });
  await host.ns.ip("address add 192.0.2.1/24 dev eth0");
  await host.ns.ip("route add default via 192.0.2.254 dev eth0");
  const choice = await finding;
  expect([choice.candidate.link.name, choice.ipv4, choice.reason]).toEqual([
    "eth0",
    "192.0.2.1",
    "default route",
  ]);
  expect(log.messages("warn").filter((line) => line.includes("there is none for IPv4"))).toHaveLength(1);
  expect(log.lines.at(-1)).toMatchObject({
    message: "external interface eth0",
    fields: { reason: "default route", ipv4: "192.0.2.1", mtu: 1500, candidates: ["far0", "eth0"] },
  });
});

test("asks the kernel which way a target is reached", async () => {
  await using host = await setUp();
  const { ns, kernel, log } = host;
  await ns.ip("address add 192.0.2.1/24 dev eth0");
  await ns.ip("address add 192.0.2.9/24 dev eth0");
  await ns.ip("route add 198.51.100.0/24 via 192.0.2.254 src 192.0.2.9");
  const signal = new AbortController().signal;
  const choice = await findInterface({
    kernel,
    wish: { ...wish, canReach: "198.51.100.7" },
    families,
    log,
    signal,
  });
  expect([choice.candidate.link.name, choice.ipv4]).toEqual(["eth0", "192.0.2.9"]);
});

test("gives up at once when the daemon stops", async () => {
  await using host = await setUp();
  const { kernel, log } = host;
  const controller = new AbortController();
  const finding = findInterface({ kernel, wish, families, log, signal: controller.signal });
  await until(() => log.messages("warn").length === 1, { message: "the first line" });
  controller.abort();
  expect(finding).rejects.toMatchObject({ code: "INTERFACE_NONE" });
  await finding.catch(() => {});
});
