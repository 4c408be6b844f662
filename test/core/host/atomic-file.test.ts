import { expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { rehearseWrite, writeFileAtomically } from "../../../core/host/atomic-file.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

const mode = (path: string) => (statSync(path).mode & 0o7777).toString(8);

test("makes the folder and the file, readable for all whatever the umask", () => {
  using folder = new TemporaryFolder();
  const path = folder.file("run", "flannel", "subnet.env");
  const umask = process.umask(0o077);
  try {
    writeFileAtomically(path, "FLANNEL_MTU=1450\n");
  } finally {
    process.umask(umask);
  }
  expect(readFileSync(path, "utf8")).toBe("FLANNEL_MTU=1450\n");
  expect(mode(path)).toBe("644");
  expect(readdirSync(folder.file("run", "flannel"))).toEqual(["subnet.env"]);
});

test.each([0o600, 0o640, 0o444])("an existing file keeps its mode %o and gets a new inode", (bits) => {
  using folder = new TemporaryFolder();
  const path = folder.file("subnet.env");
  writeFileSync(path, "old, and longer than the new one\n");
  chmodSync(path, bits);
  const before = statSync(path).ino;
  writeFileAtomically(path, "new\n");
  expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["new\n", bits.toString(8)]);
  expect(statSync(path).ino).not.toBe(before);
});

test("a reader that has the old file open reads all of the old one", async () => {
  using folder = new TemporaryFolder();
  const path = folder.file("subnet.env");
  writeFileAtomically(path, "old\n");
  const reader = Bun.file(path).stream().getReader();
  writeFileAtomically(path, "new\n");
  const { value } = await reader.read();
  expect(["old\n", "new\n"]).toContain(new TextDecoder().decode(value));
  await reader.cancel();
});

test("a link is replaced, what it points to is left alone", () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("target"), "precious\n");
  symlinkSync(folder.file("target"), folder.file("subnet.env"));
  writeFileAtomically(folder.file("subnet.env"), "new\n");
  expect(lstatSync(folder.file("subnet.env")).isSymbolicLink()).toBe(false);
  expect(readFileSync(folder.file("target"), "utf8")).toBe("precious\n");
});

test("a folder in its place is an error that leaves nothing behind", () => {
  using folder = new TemporaryFolder();
  mkdirSync(folder.file("subnet.env", "inside"), { recursive: true });
  expect(() => writeFileAtomically(folder.file("subnet.env"), "new\n")).toThrow();
  expect(() => rehearseWrite(folder.file("subnet.env"))).toThrow("folder");
  expect(readdirSync(folder.path)).toEqual(["subnet.env"]);
});

test("a parent that is a file is an error", () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("run"), "");
  expect(() => writeFileAtomically(folder.file("run", "subnet.env"), "new\n")).toThrow();
  expect(() => rehearseWrite(folder.file("run", "subnet.env"))).toThrow();
});

test("rehearsing writes nothing", () => {
  using folder = new TemporaryFolder();
  rehearseWrite(folder.file("run", "subnet.env"));
  expect(readdirSync(folder.file("run"))).toEqual([]);
});

test("on a full disk the old file stays whole and the error is told", async () => {
  using folder = new TemporaryFolder();
  const disk = folder.file("disk");
  mkdirSync(disk);
  const module = join(import.meta.dir, "../../../core/host/atomic-file.ts");
  // 16 KiB of disk, of which the old file takes 4: 32 KiB of new text find room for a part only.
  const script = `
    import { writeFileAtomically } from ${JSON.stringify(module)};
    import { readFileSync, readdirSync } from "node:fs";
    const path = ${JSON.stringify(join(disk, "subnet.env"))};
    writeFileAtomically(path, "old\\n");
    let code;
    try { writeFileAtomically(path, "x".repeat(32768)); } catch (error) { code = error.code; }
    console.log(JSON.stringify({ code, text: readFileSync(path, "utf8"), files: readdirSync(${JSON.stringify(disk)}) }));
  `;
  writeFileSync(folder.file("fill.ts"), script);
  const mounted = `mount -t tmpfs -o size=16k none ${disk} && exec ${process.execPath} ${folder.file("fill.ts")}`;
  const child = Bun.spawn(["unshare", "--mount", "sh", "-c", mounted], { stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(await child.exited, err).toBe(0);
  expect(JSON.parse(out)).toEqual({ code: "ENOSPC", text: "old\n", files: ["subnet.env"] });
});
