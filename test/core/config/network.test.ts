import { describe, expect, test } from "bun:test";
import { type NetworkConfigReading, readNetworkConfig } from "../../../core/config/network.ts";
import { Fault } from "../../../core/observe/fault.ts";

const SOURCE = "/coreos.com/network/config";

function read(config: string | object): NetworkConfigReading {
  return readNetworkConfig(typeof config === "string" ? config : JSON.stringify(config), SOURCE);
}

function refusal(config: string | object): Fault {
  try {
    read(config);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("accepted");
}

function messages(fault: Fault): string[] {
  return [fault, ...fault.others].map((each) => each.message.slice(SOURCE.length + 1));
}

function range(network: string, subnetLen: number, subnetMin: string, subnetMax: string) {
  return { network, subnetLen, subnetMin, subnetMax };
}

describe("IPv4", () => {
  test.each([
    [{ network: "10.3.0.0/16" }, range("10.3.0.0/16", 24, "10.3.1.0", "10.3.255.0")],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.3.5.0", SubnetMax: "10.3.8.0", SubnetLen: 28 },
      range("10.3.0.0/16", 28, "10.3.5.0", "10.3.8.0"),
    ],
    [
      { Network: "10.0.0.0/8", SubnetLen: 20, SubnetMin: "10.10.0.0", SubnetMax: "10.99.0.0" },
      range("10.0.0.0/8", 20, "10.10.0.0", "10.99.0.0"),
    ],
    [{ Network: "10.3.0.0/22" }, range("10.3.0.0/22", 24, "10.3.1.0", "10.3.3.0")],
    [{ Network: "10.3.0.0/23" }, range("10.3.0.0/23", 25, "10.3.0.128", "10.3.1.128")],
    [{ Network: "10.3.0.0/24" }, range("10.3.0.0/24", 26, "10.3.0.64", "10.3.0.192")],
    [{ Network: "10.3.0.0/28" }, range("10.3.0.0/28", 30, "10.3.0.4", "10.3.0.12")],
    [{ Network: "10.3.0.0/16", SubnetLen: 18 }, range("10.3.0.0/16", 18, "10.3.64.0", "10.3.192.0")],
    [{ Network: "10.3.0.0/16", SubnetLen: 30 }, range("10.3.0.0/16", 30, "10.3.0.4", "10.3.255.252")],
    [{ Network: "255.255.0.0/16" }, range("255.255.0.0/16", 24, "255.255.1.0", "255.255.255.0")],
    [{ Network: "128.0.0.0/1" }, range("128.0.0.0/1", 24, "128.0.1.0", "255.255.255.0")],
    [{ Network: "10.3.0.0/16", SubnetMin: "10.3.0.0" }, range("10.3.0.0/16", 24, "10.3.0.0", "10.3.255.0")],
    [
      { Network: "10.3.0.0/16", SubnetMin: "0.0.0.0", SubnetMax: "0.0.0.0", SubnetLen: 0 },
      range("10.3.0.0/16", 24, "10.3.1.0", "10.3.255.0"),
    ],
    [{ Network: "10.3.0.0/16", SubnetLen: null }, range("10.3.0.0/16", 24, "10.3.1.0", "10.3.255.0")],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.3.7.0", SubnetMax: "10.3.7.0" },
      range("10.3.0.0/16", 24, "10.3.7.0", "10.3.7.0"),
    ],
    [{ NETWORK: "10.3.0.0/16", sUBNETlEN: 25 }, range("10.3.0.0/16", 25, "10.3.0.128", "10.3.255.128")],
  ])("%j", (config, wanted) => {
    const reading = read(config);
    expect(reading.config.ipv4).toEqual(wanted);
    expect(reading.config.ipv6).toBeUndefined();
    expect(reading.config.families).toEqual({ ipv4: true, ipv6: false });
    expect(reading.warnings).toEqual([]);
  });

  test.each([
    [
      { Network: "10.0.0.0/32", Backend: { Type: "alloc" } },
      '1:12: key "Network": "10.0.0.0/32" holds fewer than four subnets: Network /32 is too small, at most /28; nearest legal value is 10.0.0.0/28',
    ],
    [
      { Network: "10.3.0.16/29" },
      "Network /29 is too small, at most /28; nearest legal value is 10.3.0.16/28",
    ],
    [
      { Network: "10.3.0.0/16", SubnetLen: 31 },
      '1:38: key "SubnetLen": 31 is too long: a subnet needs at least four addresses, at most /30; nearest legal value is 30',
    ],
    [{ Network: "10.3.0.0/16", SubnetLen: 32 }, "nearest legal value is 30"],
    [
      { Network: "10.3.0.0/16", SubnetLen: 17 },
      '1:38: key "SubnetLen": 17 leaves fewer than four subnets in 10.3.0.0/16; nearest legal value is 18',
    ],
    [{ Network: "10.3.0.0/28", SubnetLen: 29 }, "nearest legal value is 30"],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.2.0.0" },
      'key "SubnetMin": "10.2.0.0" lies outside the network 10.3.0.0/16; nearest legal value is 10.3.0.0',
    ],
    [
      { Network: "10.3.0.0/16", SubnetMax: "10.4.0.0" },
      'key "SubnetMax": "10.4.0.0" lies outside the network 10.3.0.0/16; nearest legal value is 10.3.255.0',
    ],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.3.5.1" },
      'key "SubnetMin": "10.3.5.1" is no /24 boundary; nearest legal value is 10.3.5.0',
    ],
    [
      { Network: "10.3.0.0/16", SubnetMax: "10.3.5.255" },
      'key "SubnetMax": "10.3.5.255" is no /24 boundary; nearest legal value is 10.3.5.0',
    ],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.3.9.0", SubnetMax: "10.3.3.0" },
      '"10.3.9.0" lies above the last subnet 10.3.3.0; nearest legal value is 10.3.3.0',
    ],
    [{ Network: "10.3.0.0/16", SubnetMax: "10.3.0.0" }, '"10.3.0.0" lies below the first subnet 10.3.1.0'],
    [{}, '1:1: key "Network" is missing'],
    [{ Network: "0.0.0.0/0" }, "is the whole address space"],
    [{ Network: "fc00::/48" }, "is an IPv6 network; it belongs in IPv6Network"],
    [{ Network: "10.3.0.0" }, "lacks the prefix length"],
    [
      { Network: "10.3.0.0/33" },
      "has no legal prefix length, which is a number up to 28; nearest legal value is 10.3.0.0/28",
    ],
    [{ Network: "10.3.0.0/x" }, "has no legal prefix length"],
    [{ Network: "10.3.00.0/16" }, "an octet has leading zeros"],
    [{ Network: "10.3.256.0/16" }, "an octet is above 255"],
    [{ Network: " 10.3.0.0/16" }, "nearest legal value is 10.3.0.0/16"],
    [{ Network: "" }, "is no IPv4 network"],
    [{ Network: null }, "null must be text: an IPv4 network"],
    [{ Network: 10 }, "10 must be text"],
    [{ Network: ["10.3.0.0/16"] }, "a list must be text"],
    [
      { Network: "10.3.0.0/16", SubnetLen: "24" },
      '"24" must be a number without quotes; nearest legal value is 24',
    ],
    [
      { Network: "10.3.0.0/16", SubnetLen: "/24" },
      '"/24" must be a number without quotes; nearest legal value is 24',
    ],
    [
      { Network: "10.3.0.0/16", SubnetLen: "31" },
      '"31" must be a number without quotes; nearest legal value is 30',
    ],
    [{ Network: "10.3.0.0/16", SubnetLen: "long" }, '"long" must be a number'],
    [{ Network: "10.3.0.0/16", SubnetLen: -1 }, "-1 must not be negative; nearest legal value is 18"],
    [{ Network: "10.3.0.0/16", SubnetLen: 24.4 }, "24.4 must be a whole number; nearest legal value is 24"],
    [{ Network: "10.3.0.0/16", SubnetLen: true }, "true must be a number"],
    ['{"Network":"10.3.0.0/16","SubnetLen":24.0}', "24.0 must be plain digits; nearest legal value is 24"],
    ['{"Network":"10.3.0.0/16","SubnetLen":2e1}', "2e1 must be plain digits; nearest legal value is 20"],
    ['{"Network":"10.3.0.0/16","SubnetLen":-0}', "-0 must be plain digits"],
    ['{"Network":"10.3.0.0/16","SubnetLen":99999999999999999999}', "is too long"],
    ['{"Network":"10.3.0.0/16","SubnetLen":1e999}', "must be"],
    [
      { Network: "10.3.0.0/16", SubnetMin: "10.3.1.0/24" },
      "is a network, not an address; nearest legal value is 10.3.1.0",
    ],
    [{ Network: "10.3.0.0/16", SubnetMin: "" }, "is no IPv4 address"],
    [{ Network: "10.3.0.0/16", SubnetMin: "fc00::" }, "is an IPv6 address; this key is for IPv4"],
    [{ Network: "10.3.0.0/16", SubnetMin: null }, "null must be text"],
    [
      { Network: "10.3.0.0/16", EnableIPv4: "true" },
      '"true" must be true or false without quotes; nearest legal value is true',
    ],
    [{ Network: "10.3.0.0/16", EnableNFTables: 1 }, "1 must be true or false"],
  ])("refuses %j", (config, message) => {
    const fault = refusal(config);
    expect(fault.code).toBe("CONFIG_INVALID");
    expect(fault.message).toStartWith(`${SOURCE}:1:`);
    expect(fault.message).toContain(message);
    expect(fault.hint).not.toBe("");
    expect(fault.others).toEqual([]);
  });
});

describe("IPv6 and dual stack", () => {
  const only6 = { EnableIPv4: false, EnableIPv6: true };

  test.each([
    [
      { enableIPv6: true, ipv6Network: "fc00::/48", enableIPv4: false },
      range("fc00::/48", 64, "fc00:0:0:1::", "fc00:0:0:ffff::"),
    ],
    [
      {
        ...only6,
        IPv6Network: "fc00::/48",
        IPv6SubnetMin: "fc00:0:0:1::",
        IPv6SubnetMax: "fc00:0:0:f::",
        IPv6SubnetLen: 124,
      },
      range("fc00::/48", 124, "fc00:0:0:1::", "fc00:0:0:f::"),
    ],
    [
      { ...only6, IPv6Network: "FD00:10:244::/56" },
      range("fd00:10:244::/56", 64, "fd00:10:244:1::", "fd00:10:244:ff::"),
    ],
    [{ ...only6, IPv6Network: "fd00::/62" }, range("fd00::/62", 64, "fd00:0:0:1::", "fd00:0:0:3::")],
    [{ ...only6, IPv6Network: "fd00::/63" }, range("fd00::/63", 65, "fd00::8000:0:0:0", "fd00:0:0:1:8000::")],
    [{ ...only6, IPv6Network: "fd00::/124" }, range("fd00::/124", 126, "fd00::4", "fd00::c")],
    [{ ...only6, IPv6Network: "ff00::/8" }, range("ff00::/8", 64, "ff00:0:0:1::", "ffff:ffff:ffff:ffff::")],
    [
      { ...only6, IPv6Network: "fd00::/48", IPv6SubnetMin: "::", IPv6SubnetMax: "::" },
      range("fd00::/48", 64, "fd00:0:0:1::", "fd00:0:0:ffff::"),
    ],
  ])("%j", (config, wanted) => {
    const reading = read(config);
    expect(reading.config.ipv6).toEqual(wanted);
    expect(reading.config.ipv4).toBeUndefined();
    expect(reading.config.families).toEqual({ ipv4: false, ipv6: true });
    expect(reading.warnings).toEqual([]);
  });

  test("dual stack", () => {
    const { config } = read({
      EnableIPv6: true,
      Network: "10.42.0.0/16",
      IPv6Network: "fd00:10:244::/56",
      EnableNFTables: true,
    });
    expect(config.families).toEqual({ ipv4: true, ipv6: true });
    expect(config.enableNFTables).toBe(true);
    expect(config.ipv4).toEqual(range("10.42.0.0/16", 24, "10.42.1.0", "10.42.255.0"));
    expect(config.ipv6).toEqual(range("fd00:10:244::/56", 64, "fd00:10:244:1::", "fd00:10:244:ff::"));
  });

  test.each([
    [{ ...only6, Backend: { Type: "wireguard", Mode: "auto" } }, '1:1: key "IPv6Network" is missing'],
    [{ ...only6, IPv6Network: "::/0" }, "is the whole address space"],
    [{ ...only6, IPv6Network: "fd00::/125" }, "Network /125 is too small, at most /124"],
    [{ ...only6, IPv6Network: "fd00::/48", IPv6SubnetLen: 127 }, "nearest legal value is 126"],
    [{ ...only6, IPv6Network: "fd00::/48", IPv6SubnetLen: 49 }, "nearest legal value is 50"],
    [
      { ...only6, IPv6Network: "fd00::/48", IPv6SubnetMin: "fd01::" },
      "nearest legal value is fd00:0:0:ffff::",
    ],
    [
      { ...only6, IPv6Network: "fd00::/48", IPv6SubnetMax: "fd00:0:0:3::1" },
      "is no /64 boundary; nearest legal value is fd00:0:0:3::",
    ],
    [{ ...only6, IPv6Network: "10.3.0.0/16" }, "is an IPv4 network; it belongs in Network"],
    [{ ...only6, IPv6Network: "::ffff:10.3.0.0/112" }, "is an IPv4 network in IPv6 form"],
    [{ ...only6, IPv6Network: "::ffff:a03:0/112" }, "is an IPv4 network in IPv6 form"],
    [{ ...only6, IPv6Network: "fd00::1%eth0/64" }, "a zone has no meaning here"],
    [
      { ...only6, IPv6Network: "fd00::/48", IPv6SubnetMin: "10.3.0.0" },
      "is an IPv4 address; this key is for IPv6",
    ],
    [{ EnableIPv4: false }, '1:15: key "EnableIPv4": false leaves both families off'],
    [{ EnableIPv4: false, EnableIPv6: false }, "leaves both families off"],
  ])("refuses %j", (config, message) => {
    const fault = refusal(config);
    expect(fault.code).toBe("CONFIG_INVALID");
    expect(fault.message).toContain(message);
    expect(fault.others).toEqual([]);
  });
});

describe("Backend", () => {
  const network = '"Network":"10.3.0.0/16"';

  test("absent means vxlan", () => {
    expect(read(`{${network}}`).config.backend).toEqual({
      type: "vxlan",
      typeAsWritten: "vxlan",
      options: {},
    });
  });

  test("the type is looked up in lower case, the options stay as written", () => {
    expect(
      read(`{${network},"backend":{"tYPE":"Host-GW","vni":1,"Nested":{"A":[1,null]}}}`).config.backend,
    ).toEqual({
      type: "host-gw",
      typeAsWritten: "Host-GW",
      options: { vni: 1, Nested: { A: [1, null] } },
    });
  });

  test.each([
    ['"Backend":null', '1:36: key "Backend": null is no object'],
    ['"Backend":{}', '1:36: key "Backend": "Type" is missing'],
    ['"Backend":{"Port":8472}', '"Type" is missing'],
    ['"Backend":"vxlan"', 'key "Backend": "vxlan" is no object'],
    ['"Backend":["vxlan"]', 'key "Backend": a list is no object'],
    ['"Backend":{"Type":null}', '1:44: key "Backend.Type": null is no backend type'],
    ['"Backend":{"Type":""}', 'key "Backend.Type": "" is no backend type'],
    ['"Backend":{"Type":7}', 'key "Backend.Type": 7 is no backend type'],
  ])("refuses %s", (backend, message) => {
    const fault = refusal(`{${network},${backend}}`);
    expect(fault.message).toContain(message);
    expect(fault.hint).toContain("vxlan");
  });
});

describe("warnings", () => {
  test("host bits are masked off, once", () => {
    const { config, warnings } = read({ Network: "192.168.5.0/16", Backend: { Type: "vxlan" } });
    expect(config.ipv4?.network).toBe("192.168.0.0/16");
    expect(warnings.map(({ code, fix }) => [code, fix])).toEqual([
      ["CONFIG_HOST_BITS", 'write "192.168.0.0/16"'],
    ]);
  });

  test("a bound outside is refused, and the warning is not lost", () => {
    const fault = refusal({
      Network: "192.168.5.0/16",
      SubnetMax: "192.139.99.0",
      Backend: { Type: "vxlan" },
    });
    expect(fault.message).toContain('"192.139.99.0" lies outside the network 192.168.0.0/16');
    expect(fault.others.map(({ code }) => code)).toEqual(["CONFIG_HOST_BITS"]);
  });

  test("unknown keys, with the name they were meant to be", () => {
    const { warnings } = read('{"Network":"10.3.0.0/16",\n"SubnetLenn":24,"Colour":"blue"}');
    expect(warnings.map(({ text, fix }) => [text, fix])).toEqual([
      [`${SOURCE}:2:1: key "SubnetLenn" is unknown and ignored`, 'did you mean "SubnetLen"?'],
      [
        `${SOURCE}:2:17: key "Colour" is unknown and ignored`,
        expect.stringContaining("known are EnableIPv4"),
      ],
    ]);
  });

  test("a misspelt key is told along with the one that is missing", () => {
    const fault = refusal({ Netwrok: "10.3.0.0/16" });
    expect(fault.message).toContain('key "Network" is missing');
    expect(fault.others.map(({ hint }) => hint)).toEqual(['did you mean "Network"?']);
  });

  test("of equal keys, in any case, the last one counts", () => {
    const { config, warnings } = read(
      '{"Network":"10.3.0.0/16","network":"10.4.0.0/16","Backend":{"Type":"udp","Port":1,"Port":2}}',
    );
    expect(config.ipv4?.network).toBe("10.4.0.0/16");
    expect(config.backend.options).toEqual({ Port: 2 });
    expect(warnings.map(({ text }) => text)).toEqual([
      `${SOURCE}:1:26: key "network" repeats "Network" of 1:2; the last one counts`,
      `${SOURCE}:1:83: key "Port" repeats "Port" of 1:74; the last one counts`,
    ]);
  });

  test("a family that is off", () => {
    const { warnings } = read({ Network: "10.3.0.0/16", IPv6Network: "fd00::/48" });
    expect(warnings.map(({ code, fix }) => [code, fix])).toEqual([
      ["CONFIG_IGNORED_KEY", 'set "EnableIPv6" to true, or remove "IPv6Network"'],
    ]);
  });

  test("a byte order mark", () => {
    expect(read('\ufeff{"Network":"10.3.0.0/16"}').warnings.map(({ code }) => code)).toEqual(["CONFIG_BOM"]);
  });

  test("their number is bounded", () => {
    const keys = Array.from({ length: 5_000 }, (_, at) => `"unknown${at}":1,"same":2`);
    const { warnings } = read(`{"Network":"10.3.0.0/16",${keys.join(",")}}`);
    expect(warnings.length).toBe(42);
    expect(warnings.map(({ text }) => text)).toContain(`${SOURCE}: 4979 further duplicate keys`);
  });
});

describe("faults", () => {
  test("all issues come in one pass, in the order of the document", () => {
    const text = [
      "{",
      '  "SubnetLen": 31,',
      '  "Network": "10.3.0.0/16",',
      '  "SubnetMin": "10.3.5.1",',
      '  "SubnetMax": "9.0.0.0",',
      '  "EnableIPv6": true, "IPv6Network": "10.0.0.0/8",',
      '  "EnableNFTables": "yes",',
      '  "Backend": null',
      "}",
    ].join("\n");
    expect(messages(refusal(text))).toEqual([
      '2:16: key "SubnetLen": 31 is too long: a subnet needs at least four addresses, at most /30; nearest legal value is 30',
      '4:16: key "SubnetMin": "10.3.5.1" is no /30 boundary; nearest legal value is 10.3.5.0',
      '5:16: key "SubnetMax": "9.0.0.0" lies outside the network 10.3.0.0/16; nearest legal value is 10.3.5.0',
      '6:38: key "IPv6Network": "10.0.0.0/8" is an IPv4 network; it belongs in Network',
      '7:21: key "EnableNFTables": "yes" must be true or false',
      '8:14: key "Backend": null is no object',
    ]);
  });

  test.each(["[]", "null", '"text"', "7", "true"])("%s is no config", (text) => {
    expect(refusal(text).message).toContain("is no network config");
  });

  test("syntax errors carry the source", () => {
    expect(refusal('{"Network": "10.3.0.0/16",}').message).toStartWith(`${SOURCE}:1:26: "," before "}"`);
  });
});
