import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Namespace } from "../namespace.ts";
import { IN_VM, runInVm, vmTests } from "./vm.ts";

const TIMEOUT = 600_000;
const vm = vmTests(import.meta.path);
let namespace: Namespace;

if (IN_VM) {
  beforeAll(async () => {
    namespace = await Namespace.create("vm");
  });
  afterAll(() => namespace[Symbol.asyncDispose]());
} else {
  test(
    "a command's output, environment and exit code come back",
    async () => {
      const written = ["/var", tmpdir()].map((folder) => join(folder, "flannel-was-here"));
      const script = 'echo "out $WORD"; echo err >&2; touch "$@"; exit 7';
      const env = { WORD: `a "b' $c` };
      const { output, exitCode } = await runInVm(["sh", "-c", script, "sh", ...written], { env });
      expect(output.trim()).toBe(`out a "b' $c\nerr`);
      expect(exitCode).toBe(7);
      expect(written.filter((path) => existsSync(path))).toEqual([]);
    },
    TIMEOUT,
  );

  test(
    "a guest that does not end is ended",
    async () => {
      expect((await runInVm(["sleep", "1000"], { timeout: 5 })).exitCode).toBe(255);
    },
    TIMEOUT,
  );
}

for (const [type, options] of [
  // Without a local address it would be tunl0 once more.
  ["ipip", "local 10.9.0.1"],
  ["wireguard", ""],
  ["vxlan", "id 1 dstport 1"],
  ["dummy", ""],
]) {
  vm.test(`the kernel has ${type} devices`, async () => {
    await namespace.ip(`link add test0 type ${type} ${options}`);
    await namespace.ip("link delete test0");
  });
}

vm.test("the kernel has ESP, nftables and iptables", async () => {
  await namespace.ip(
    "xfrm state add src 10.9.0.1 dst 10.9.0.2 proto esp spi 0x100 mode tunnel " +
      "aead rfc4106(gcm(aes)) 0x0102030405060708090a0b0c0d0e0f1011121314 128",
  );
  await namespace.exec("nft", "add table ip test");
  await namespace.exec("iptables", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE");
});
