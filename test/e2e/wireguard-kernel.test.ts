/**
 * The wireguard backend with the kernel's WireGuard, in a virtual machine whose kernel has it.
 *
 *   pod ── cni0 ── h1 ── flannel-wg ═ ext0 ─┬─ switch + etcd ─┬─ ext0 ═ flannel-wg ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll } from "bun:test";
import { IN_VM, vmTests } from "../lab/vm/vm.ts";
import { Mesh } from "./wireguard-lab.ts";
import { carriesEncrypted, changesInPlace, healsEncrypted, healsPeers } from "./wireguard-scenarios.ts";

const vm = vmTests(import.meta.path, { timeout: 600 });
let mesh: Mesh;

if (IN_VM) {
  beforeAll(async () => {
    mesh = await Mesh.create({ options: { PersistentKeepaliveInterval: 1 } });
  });
  afterAll(() => mesh[Symbol.asyncDispose]());
}

// A start takes half a minute here: a few things of each kind, the rest is shown natively and by three-hosts/.
vm.test("pods reach each other, encrypted, over the exact MTU", () => carriesEncrypted(mesh));
vm.test("what is damaged is repaired, nothing in clear", () => healsEncrypted(mesh, 2));
vm.test("peers that somebody changes are right again", () => healsPeers(mesh));
vm.test("another port and another secret are taken in place", () => changesInPlace(mesh));
