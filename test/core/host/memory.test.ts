import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { findEmbeddedProgram, isPristine } from "../../../core/host/embedded-program.ts";
import { findDroppable, wholePages } from "../../../core/host/memory.ts";
import { executable } from "../../lab/daemon.ts";

const PAGE_BYTES = Number(Bun.spawnSync(["getconf", "PAGESIZE"]).stdout.toString());

const mapping = (head: string, anonymous: number) =>
  `${head}\nSize:               1024 kB\nAnonymous:      ${anonymous} kB\nVmFlags: rd mr mw me\n`;

test("what can be dropped is backed by a file, cannot be written, and has no page of its own", () => {
  const smaps = [
    mapping("00200000-01a39000 r--p 00000000 fe:00 2162804                  /usr/bin/flanneld", 0),
    mapping("01a40000-0684a000 r-xp 01838000 fe:00 2162804                  /usr/bin/flanneld", 0),
    mapping("0684a000-06867000 r--p 06641000 fe:00 2162804                  /usr/bin/flanneld", 116),
    mapping("06867000-07b70000 rw-p 0665e000 fe:00 2162804                  /usr/bin/flanneld", 0),
    mapping("7ffd1a7f4000-7ffd1a7f8000 r--p 00000000 00:00 0                [vvar]", 0),
    mapping("7f0000000000-7f0000001000 r--p 00000000 00:00 0 ", 0),
  ].join("");
  expect(findDroppable(smaps)).toEqual([
    { start: 0x200000, end: 0x1a39000 },
    { start: 0x1a40000, end: 0x684a000 },
  ]);
});

test("the embedded program is where readelf sees it", () => {
  const listing = Bun.spawnSync(["readelf", "-SW", executable()]).stdout.toString();
  const [, address = "", size = ""] =
    / \.bun +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)/.exec(listing) ?? [];
  const start = Number.parseInt(address, 16);
  expect(start).toBeGreaterThan(0);
  expect(findEmbeddedProgram(executable())).toEqual({ start, end: start + Number.parseInt(size, 16) });
});

test("a program that lies elsewhere each time, or that embeds nothing, has none", () => {
  expect(findEmbeddedProgram("/bin/sh")).toBeUndefined();
  expect(findEmbeddedProgram(process.execPath)?.end ?? 0).toBeLessThan(2 ** 47);
  expect(findEmbeddedProgram(import.meta.path)).toBeUndefined();
});

test("only whole pages are dropped", () => {
  expect(wholePages({ start: 4097, end: 12_287 }, 4096)).toEqual({ start: 8192, end: 8192 });
  expect(wholePages({ start: 4096, end: 12_288 }, 4096)).toEqual({ start: 4096, end: 12_288 });
  expect(wholePages({ start: 4097, end: 4098 }, 4096)).toEqual({ start: 8192, end: 8192 });
});

test("code of a process is pristine, its stack is not", () => {
  const smaps = readFileSync("/proc/self/smaps", "utf8");
  const code = findDroppable(smaps);
  expect(code).not.toBeEmpty();
  for (const range of code) expect(isPristine(range, PAGE_BYTES)).toBeTrue();
  const [, end = ""] = /^[0-9a-f]+-([0-9a-f]+) rw-p .*\[stack\]$/m.exec(smaps) ?? [];
  const top = Number.parseInt(end, 16);
  expect(isPristine({ start: top - 4 * PAGE_BYTES, end: top }, PAGE_BYTES)).toBeFalse();
});
