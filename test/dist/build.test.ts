/** The build pipeline itself: what goes in, and that equal sources give equal bytes. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SERVICE_OF, STREAM_SERVICE_OF } from "../../core/lease/etcd/rpc.ts";
import { writeChecksums } from "../../dist/build/checksums.ts";
import { BuildError } from "../../dist/build/error.ts";
import { ETCD3_FOLDER, ETCD3_PATCHES, patchSource } from "../../dist/build/etcd3.ts";
import { checkPatched } from "../../dist/build/patch.ts";
import { renderSbom } from "../../dist/build/sbom.ts";
import { findTarget, TARGETS } from "../../dist/build/target.ts";
import { identifyBuild } from "../../dist/build/version.ts";
import { build, repository, run, TemporaryFolder } from "./run-executable.ts";

const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

test("releases from two checkouts of one source are equal byte for byte", async () => {
  using folder = new TemporaryFolder();
  const [here, there] = [join(folder.path, "here"), join(folder.path, "deeper/there")];
  const parts = ["core", "backends", "plugins", "dist/build", "package.json", "bun.lock", "tsconfig.json"];
  for (const part of parts) cpSync(join(repository, part), join(here, part), { recursive: true });
  cpSync(here, there, { recursive: true });
  for (const place of [here, there]) {
    // Hard links are quick; across file systems they are not to be had.
    const copy = 'cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"';
    expect(Bun.spawnSync(["sh", "-c", copy, join(repository, "node_modules"), place]).exitCode).toBe(0);
    const cwd = place === here ? place : folder.path;
    const args = [join(place, "dist/build/main.ts"), "--target", "host", "--out", join(place, "out")];
    const built = await run(process.execPath, args, cwd, { PATH: process.env.PATH ?? "" }, 100_000);
    expect(built).toMatchObject({ stderr: "", exitCode: 0 });
    expect(readdirSync(join(place, "out")).sort()).toEqual(["SHA256SUMS", "flanneld", "flanneld.cdx.json"]);
  }
  for (const file of ["flanneld", "flanneld.cdx.json", "SHA256SUMS"]) {
    expect(digest(join(there, "out", file))).toBe(digest(join(here, "out", file)));
  }
}, 210_000);

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
  const check = (file: string) => checkPatched([file], ETCD3_FOLDER, ETCD3_PATCHES);
  expect(() => check("node_modules/etcd3/lib/index.js")).toThrow(BuildError);
  expect(() => check("core/main.ts")).not.toThrow();
});

test("the embedded protocol holds every call that is made, and none besides", () => {
  const source = patchSource(join(repository, "node_modules/etcd3/lib/connection-pool.js"));
  const { nested } = JSON.parse(/fromJSON\)\((\{.*\}), \{/.exec(source)?.[1] ?? "{}");
  const calls = Object.entries<{ methods?: object }>(nested.etcdserverpb.nested).flatMap(
    ([service, { methods }]) => Object.keys(methods ?? {}).map((name) => [lowerFirst(name), service]),
  );
  expect(Object.fromEntries(calls)).toEqual({ ...SERVICE_OF, ...STREAM_SERVICE_OF });
  expect(nested.etcdserverpb.nested).not.toHaveProperty("MemberAddRequest");
  expect(nested.mvccpb.nested).toHaveProperty("KeyValue");
});

function lowerFirst(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

test("64-bit numbers become text as they always did", () => {
  const path = join(repository, "node_modules/long/umd/index.js");
  const load = (source: string) => {
    const module = {
      exports: {} as { fromString(text: string, unsigned?: boolean): { toString(radix?: number): string } },
    };
    new Function("module", "exports", source)(module, module.exports);
    return module.exports;
  };
  const [patched, original] = [load(patchSource(path)), load(readFileSync(path, "utf8"))];
  const signed = [
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "-4294967297",
    "9007199254740991",
    "9007199254740993",
  ];
  for (const text of [...signed, "7587889221083434506", "9223372036854775807", "-9223372036854775808"]) {
    expect(patched.fromString(text).toString()).toBe(text);
    expect(patched.fromString(text).toString(16)).toBe(original.fromString(text).toString(16));
  }
  for (const text of ["18446744073709551615", "9223372036854775808", "4294967295"]) {
    expect(patched.fromString(text, true).toString()).toBe(text);
  }
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
