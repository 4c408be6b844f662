import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { readConfiguration, routingRuleOf } from "../../../backends/ipsec/charon/configuration.ts";
import { findCharon } from "../../../backends/ipsec/charon/find.ts";
import {
  connectionMessage,
  connectionName,
  settingsOf,
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

test("the configuration is strongswan.conf with all that it includes, and tells the routing rule", () => {
  using folder = new TemporaryFolder();
  const conf = folder.file("strongswan.conf");
  mkdirSync(folder.file("strongswan.d/charon"), { recursive: true });
  writeFileSync(
    conf,
    "charon {\n  plugins {\n    include strongswan.d/charon/*.conf }\n}\ninclude strongswan.d/*.conf\n",
  );
  expect(readConfiguration(folder.file("none"))).toBe("");
  expect(routingRuleOf(readConfiguration(conf))).toEqual({ table: 220, priority: 220 });
  writeFileSync(folder.file("strongswan.d/charon/vici.conf"), "vici { load = yes }\n");
  const plain = readConfiguration(conf);
  expect(plain).toContain("vici { load = yes }");
  writeFileSync(folder.file("strongswan.d/a.conf"), "# routing_table = 7\ncharon { routing_table = 55 }\n");
  writeFileSync(
    folder.file("strongswan.d/b.conf"),
    "charon.routing_table_prio = 0\ninclude ../strongswan.conf\n",
  );
  const changed = readConfiguration(conf);
  expect(changed).not.toBe(plain);
  expect(routingRuleOf(changed)).toEqual({ table: 55, priority: 0 });
  expect(readConfiguration(conf)).toBe(changed);
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

  test("settings differ where a tunnel would be another one, whoever is at its far end", () => {
    const settings = [
      settingsOf(OWN, OPTIONS),
      settingsOf(OWN, { ...OPTIONS, PSK: `${PSK}x` }),
      settingsOf(OWN, { ...OPTIONS, UDPEncap: true }),
      settingsOf(OWN, { ...OPTIONS, ESPProposal: "aes256gcm16-ecp384" }),
      settingsOf({ ...OWN, identity: "198.51.100.1" }, OPTIONS),
      settingsOf({ ...OWN, address: "192.0.2.9" }, OPTIONS),
      settingsOf({ ...OWN, subnet: "10.5.9.0/24" }, OPTIONS),
    ];
    expect(new Set(settings).size).toBe(settings.length);
    expect(settingsOf({ ...OWN }, { ...OPTIONS })).toBe(settings[0]!);
  });

  test("where charon moves the packets it makes policies, and numbers tunnels itself", () => {
    const [connection] = Object.values(connectionMessage(OWN, farEnd(2), OPTIONS, true)) as ViciMessage[];
    const [child] = Object.values(connection?.children as ViciMessage) as ViciMessage[];
    expect(child).toMatchObject({ policies: "yes" });
    expect(child).not.toHaveProperty("reqid");
  });
});
