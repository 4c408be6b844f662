/** The build pipeline itself: what goes in, and that equal sources give equal bytes. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { writeChecksums } from "../../dist/build/checksums.ts";
import { BuildError } from "../../dist/build/error.ts";
import { checkEtcd3Patched } from "../../dist/build/etcd3.ts";
import { renderSbom } from "../../dist/build/sbom.ts";
import { findTarget, TARGETS } from "../../dist/build/target.ts";
import { identifyBuild } from "../../dist/build/version.ts";
import { build, repository, run, TemporaryFolder } from "./run-executable.ts";

const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

test("two builds of one source are equal byte for byte and leave nothing else behind", async () => {
  using folder = new TemporaryFolder();
  const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
  await build("test/dist/etcd3-main.ts", first);
  await build("test/dist/etcd3-main.ts", second);
  expect(digest(second)).toBe(digest(first));
  expect(readdirSync(folder.path).sort()).toEqual(["first", "second"]);
}, 60_000);

test("etcd3 works without its package folder, and is in the bill of materials", async () => {
  using folder = new TemporaryFolder();
  const executable = join(folder.path, "etcd3-main");
  const packages = await build("test/dist/etcd3-main.ts", executable);
  const { stdout, stderr } = await run(executable, [], folder.path);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({ version: identifyBuild(repository).version, etcd3: "function" });

  const names = packages.map((path) => basename(path));
  expect(names).toContain("etcd3");
  const sbom = JSON.parse(renderSbom(repository, packages, { version: "1.2.3", commit: "" }));
  expect(sbom.components.map((component: { name: string }) => component.name)).toContain("etcd3");
  expect(sbom.components.every((component: { version: string }) => /^\d+\.\d+/.test(component.version))).toBe(
    true,
  );
  expect(sbom.metadata.component).toEqual({ type: "application", name: "flanneld", version: "1.2.3" });
}, 60_000);

test("a build that lost a file to be patched fails", () => {
  expect(() => checkEtcd3Patched(["node_modules/etcd3/lib/index.js"])).toThrow(BuildError);
  expect(() => checkEtcd3Patched(["core/main.ts"])).not.toThrow();
});

test("a build without its main file names it", async () => {
  using folder = new TemporaryFolder();
  await expect(build("core/no-such-main.ts", join(folder.path, "x"))).rejects.toThrow("no-such-main.ts");
  expect(readdirSync(folder.path)).toEqual([]);
}, 60_000);

test("targets are found by name and every runtime is pinned", () => {
  const lock = JSON.parse(readFileSync(join(repository, "test/toolchain/package-lock.json"), "utf8"));
  for (const target of TARGETS) {
    expect(findTarget(target.name)).toBe(target);
    expect(lock.packages[`node_modules/${target.runtimePackage}`]).toMatchObject({ version: Bun.version });
  }
  expect(findTarget("host").name).toStartWith(`linux-${process.arch}`);
  expect(() => findTarget("plan9-x64")).toThrow('unknown target "plan9-x64"; known: host, all, linux-x64');
});

test("sha256sum accepts the checksums", () => {
  using folder = new TemporaryFolder();
  for (const name of ["b", "a"]) writeFileSync(join(folder.path, name), name);
  writeChecksums(folder.path, ["b", "a"]);
  const check = Bun.spawnSync(["sha256sum", "--check", "--strict", "SHA256SUMS"], { cwd: folder.path });
  expect(check.stdout.toString()).toBe("a: OK\nb: OK\n");
});
