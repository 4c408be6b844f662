import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { identifyNode, identityFile, rememberIdentity } from "../../../core/host/node-id.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

const MAC = "02:00:00:00:00:01";

test("is derived from machine and interface, hexadecimal, and without the machine id in it", () => {
  using folder = new TemporaryFolder();
  const { nodeId, bootId } = identifyNode({ wanted: "", subnetFile: folder.file("subnet.env"), mac: MAC });
  expect(nodeId).toMatch(/^[0-9a-f]{12}-[0-9a-f]{12}$/);
  expect(bootId).toMatch(/^[0-9a-f]{12}$/);
  if (existsSync("/etc/machine-id")) {
    expect(nodeId).not.toContain(readFileSync("/etc/machine-id", "utf8").trim().slice(0, 8));
  }
});

test("is the same each time; another interface makes another one of the same machine", () => {
  using folder = new TemporaryFolder();
  const input = { wanted: "", subnetFile: folder.file("subnet.env") };
  const first = identifyNode({ ...input, mac: MAC });
  expect(identifyNode({ ...input, mac: MAC })).toEqual(first);
  const clone = identifyNode({ ...input, mac: "02:00:00:00:00:02" });
  expect(clone.nodeId).not.toBe(first.nodeId);
  expect(clone.nodeId.split("-")[0]).toBe(first.nodeId.split("-")[0]!);
  expect(clone.bootId).toBe(first.bootId);
  expect(identifyNode(input).nodeId).toMatch(/^[0-9a-f]{12}-[0-9a-f]{12}$/);
});

test("a remembered one survives a changed interface", () => {
  using folder = new TemporaryFolder();
  const subnetFile = folder.file("subnet.env");
  const first = identifyNode({ wanted: "", subnetFile, mac: MAC });
  rememberIdentity(subnetFile, first);
  expect(identifyNode({ wanted: "", subnetFile, mac: "02:00:00:00:00:02" })).toEqual(first);
});

test("the flag wins over the remembered one", () => {
  using folder = new TemporaryFolder();
  const subnetFile = folder.file("subnet.env");
  rememberIdentity(subnetFile, identifyNode({ wanted: "", subnetFile, mac: MAC }));
  expect(identifyNode({ wanted: "rack-7", subnetFile, mac: MAC }).nodeId).toBe("rack-7");
});

describe("a remembered one that makes no sense is ignored:", () => {
  test.each(["", "\n", "UPPER", "two\nlines", "-dash", "x".repeat(64), "\0", "../../etc"])("%p", (text) => {
    using folder = new TemporaryFolder();
    const subnetFile = folder.file("subnet.env");
    const derived = identifyNode({ wanted: "", subnetFile, mac: MAC });
    writeFileSync(identityFile(subnetFile), text);
    expect(identifyNode({ wanted: "", subnetFile, mac: MAC })).toEqual(derived);
  });
});

test("that it cannot be remembered is no failure", () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("file"), "");
  rememberIdentity(folder.file("file", "subnet.env"), { nodeId: "a", bootId: "b" });
});
