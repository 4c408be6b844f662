import { describe, expect, test } from "bun:test";
import { range, read, refusal } from "./reading.ts";

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
