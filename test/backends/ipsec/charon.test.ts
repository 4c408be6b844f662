import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { findCharon } from "../../../backends/ipsec/charon/find.ts";
import { clearRemains, forgetCharon, rememberCharon } from "../../../backends/ipsec/charon/remains.ts";
import {
  connectionMessage,
  connectionName,
  sharedKeyMessage,
  subnetsOfName,
} from "../../../backends/ipsec/connection.ts";
import ipsec from "../../../backends/ipsec/index.ts";
import type { ViciMessage } from "../../../backends/ipsec/vici/message.ts";
import { TemporaryFolder } from "../../core/host/temporary-folder.ts";
import { FACTS } from "../facts.ts";
import { farEnd, NETWORK, OPTIONS, OWN, PSK } from "./ends.ts";

test("charon is looked for where the flag says, else in PATH and where packages put it", async () => {
  using folder = new TemporaryFolder();
  mkdirSync(folder.file("bin"));
  const charon = folder.file("bin", "charon");
  writeFileSync(charon, "#!/bin/sh\n");
  expect(findCharon({ "charon-executable": charon })).toEqual({ places: [charon] });
  chmodSync(charon, 0o755);
  expect(findCharon({ "charon-executable": charon })).toEqual({ places: [charon], found: charon });
  expect(findCharon({ "charon-executable": folder.path }).found).toBeUndefined();
  expect(findCharon({}, `relative:${folder.file("bin")}`).found).toBe(charon);
  const findings = await ipsec.check?.({
    options: OPTIONS,
    families: { ipv4: true, ipv6: false },
    networks: { ipv4: NETWORK },
    nodeId: "n1",
    flags: { "charon-executable": "/nonexistent/charon" },
    facts: FACTS,
  });
  expect(findings).toMatchObject([{ code: "IPSEC_CHARON_MISSING", severity: "error" }]);
  expect(findings?.[0]?.text).toContain("/nonexistent/charon");
  expect(findings?.[0]?.fix).toContain("strongswan-charon");
});

test("a charon that a former run left is killed; no other process is", async () => {
  using folder = new TemporaryFolder();
  const state = folder.file("charon");
  const left = Bun.spawn(["sleep", "1000"]);
  rememberCharon(state, left.pid);
  expect(clearRemains(state)).toBe(left.pid);
  await left.exited;
  expect(left.signalCode).toBe("SIGKILL");
  // What it left is removed with its note, by whoever follows.
  expect(existsSync(state)).toBe(true);
  forgetCharon(state);
  expect(existsSync(state)).toBe(false);
  const other = Bun.spawn(["sleep", "1000"]);
  // The same id, started at another time.
  writeFileSync(state, JSON.stringify({ pid: other.pid, since: "1" }));
  expect(clearRemains(state)).toBeUndefined();
  for (const text of ["", "{}", "null", '{"pid":1,"since":"0"}', '{"pid":"x"}']) {
    writeFileSync(state, text);
    expect(clearRemains(state)).toBeUndefined();
  }
  expect(other.exitCode).toBeNull();
  other.kill();
  await other.exited;
});

describe("what charon is told", () => {
  test("names and proposals are upstream's, the key holds for all peers", () => {
    const name = connectionName(OWN, farEnd(2));
    expect(name).toBe("192.0.2.1-10.5.1.0/24-10.5.2.0/24-192.0.2.2");
    expect(subnetsOfName(name)).toEqual(["10.5.1.0/24", "10.5.2.0/24"]);
    for (const other of ["home", "10.5.1.0/24-10.5.2.0/24", `x${name}`])
      expect(subnetsOfName(other)).toBeUndefined();
    expect(connectionMessage(OWN, farEnd(2), { ...OPTIONS, UDPEncap: true }, false)).toMatchObject({
      [name]: {
        version: "2",
        keyingtries: "0",
        encap: "yes",
        local_addrs: ["192.0.2.1"],
        remote_addrs: ["192.0.2.2"],
        proposals: ["aes256-sha256-modp4096"],
        children: {
          "10.5.1.0/24-10.5.2.0/24": {
            local_ts: ["10.5.1.0/24"],
            remote_ts: ["10.5.2.0/24"],
            esp_proposals: [OPTIONS.ESPProposal],
            mode: "tunnel",
            reqid: "11",
            policies: "no",
          },
        },
      },
    });
    expect(sharedKeyMessage(OWN, [farEnd(3), farEnd(2)], PSK)).toEqual({
      id: "flannel",
      type: "IKE",
      data: PSK,
      owners: ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    });
  });

  test("where charon moves the packets it makes policies, and numbers tunnels itself", () => {
    const [connection] = Object.values(connectionMessage(OWN, farEnd(2), OPTIONS, true)) as ViciMessage[];
    const [child] = Object.values(connection?.children as ViciMessage) as ViciMessage[];
    expect(child).toMatchObject({ policies: "yes" });
    expect(child).not.toHaveProperty("reqid");
  });
});
