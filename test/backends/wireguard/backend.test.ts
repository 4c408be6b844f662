import { afterEach, beforeEach, expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host, HostKernel } from "flannel/sdk";
import { WireguardBackend } from "../../../backends/wireguard/backend.ts";
import { FACTS } from "../facts.ts";
import { IPV4, optionsWith } from "./leases.ts";

let folder: string;
const former = process.env.WIREGUARD_KEY_FILE;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flannel-wireguard-"));
  process.env.WIREGUARD_KEY_FILE = join(folder, "wgkey");
});
afterEach(() => {
  if (former === undefined) delete process.env.WIREGUARD_KEY_FILE;
  else process.env.WIREGUARD_KEY_FILE = former;
  rmSync(folder, { recursive: true, force: true });
});

/** A kernel that has a WireGuard device, and takes everything. */
const KERNEL = {
  link: async (name: string) => ({ name, index: 9, type: "wireguard", mtu: 1420, up: true }),
  wireguard: async () => ({ listenPort: 51820, peers: [] }),
  setWireguard: async () => {},
  setLink: async () => {},
  routes: async () => [],
  addresses: async () => [],
  apply: async () => [],
} as unknown as HostKernel;

test.each(["stop", "cleanup"] as const)("nothing looks at the peers after %s", async (end) => {
  const { signal } = new AbortController();
  const host = { kernel: KERNEL, log: { info() {}, warn() {} }, signal, wake() {} };
  const backend = new WireguardBackend({
    options: optionsWith(),
    families: IPV4,
    networks: { ipv4: "10.5.0.0/16" },
    nodeId: "n1",
  });
  await backend.prepare(
    { ...host, statePath: (name: string) => join(folder, name) } as unknown as Host,
    FACTS,
  );
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  await (end === "stop" ? backend.stop() : backend.cleanup({ dryRun: false }));
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});
