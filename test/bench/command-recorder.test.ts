import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandRecorder, isWrite } from "./command-recorder.ts";

test("commands of the folder do what they always do, and are noted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "flannel-recorder-"));
  try {
    const recorder = new CommandRecorder(directory);
    expect(recorder.lines()).toEqual([]);
    const run = Bun.spawn(["sh", "-c", "nft --version && nft -j list tables >/dev/null"], {
      env: { PATH: recorder.path },
      stdout: "pipe",
    });
    expect(await run.stdout.text()).toContain("nftables v");
    expect(await run.exited).toBe(0);
    expect(recorder.lines()).toEqual(["nft --version", "nft -j list tables"]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test.each([
  ["nft -j list table ip flannel-ipv4", false],
  ["nft -f -", true],
  ["iptables-nft-save", false],
  ["ip6tables-legacy-restore --noflush --wait=5", true],
  ["iptables --version", false],
  ["iptables -t nat -A POSTROUTING -j X", true],
  ["iptables -t nat -C POSTROUTING -j X", false],
])("%s writes: %p", (line, expected) => {
  expect(isWrite(line)).toBe(expected);
});
