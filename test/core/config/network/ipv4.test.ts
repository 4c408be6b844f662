import { describe, expect, test } from "bun:test";
import { range, read, refusal, SOURCE } from "./reading.ts";

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
