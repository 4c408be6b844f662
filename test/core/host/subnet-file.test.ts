import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import {
  assertSubnetFilePath,
  parseSubnetFile,
  readSubnetFile,
  renderSubnetFile,
  type SubnetFileContent,
  writeSubnetFile,
} from "../../../core/host/subnet-file.ts";
import { formatPrefix, prefix4, prefix6 } from "../../../core/net/prefix.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

const v4 = {
  networks: { ipv4: "10.244.0.0/16" },
  subnets: { ipv4: "10.244.1.0/24" },
  mtu: 1450,
  ipMasq: true,
};

describe("the bytes, as upstream writes them", () => {
  test.each<[string, SubnetFileContent, string]>([
    [
      "vxlan, IPv4",
      v4,
      "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
    ],
    [
      "host-gw",
      { ...v4, subnets: { ipv4: "10.244.2.0/24" }, mtu: 1500, ipMasq: false },
      "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.2.1/24\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=false\n",
    ],
    [
      "dual stack",
      {
        networks: { ipv4: "10.244.0.0/16", ipv6: "fd00:10:244::/48" },
        subnets: { ipv4: "10.244.1.0/24", ipv6: "fd00:10:244:2f::/64" },
        mtu: 1450,
        ipMasq: true,
      },
      "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_IPV6_NETWORK=fd00:10:244::/48\n" +
        "FLANNEL_IPV6_SUBNET=fd00:10:244:2f::1/64\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
    ],
    [
      "IPv6 only",
      {
        networks: { ipv6: "fd00:10:244::/48" },
        subnets: { ipv6: "fd00:10:244:2f::/64" },
        mtu: 1430,
        ipMasq: false,
      },
      "FLANNEL_IPV6_NETWORK=fd00:10:244::/48\nFLANNEL_IPV6_SUBNET=fd00:10:244:2f::1/64\nFLANNEL_MTU=1430\n" +
        "FLANNEL_IPMASQ=false\n",
    ],
  ])("%s", (_, content, bytes) => {
    expect(renderSubnetFile(content)).toBe(bytes);
  });
});

describe("reading the file of the last run", () => {
  test("what was written comes back", () => {
    const prefix = fc
      .tuple(fc.nat(0xffffffff), fc.integer({ min: 8, max: 30 }))
      .map(([address, length]) => formatPrefix(prefix4(address, length)));
    const prefixV6 = fc
      .tuple(fc.bigInt({ min: 1n << 125n, max: (1n << 126n) - 1n }), fc.integer({ min: 16, max: 124 }))
      .map(([address, length]) => formatPrefix(prefix6(address, length)));
    const family = { ipv4: prefix, ipv6: prefixV6 };
    const content = fc.record({
      networks: fc.record(family),
      subnets: fc.record(family),
      mtu: fc.nat(65_535),
      ipMasq: fc.boolean(),
    });
    fc.assert(
      fc.property(content, (written) => {
        const { networks, subnets, mtu } = written;
        const read = { networks, subnets, problems: [], ...(mtu > 0 ? { mtu } : {}) };
        expect(parseSubnetFile(renderSubnetFile(written))).toEqual(read);
      }),
    );
  });

  test.each([
    ["export and double quotes", 'export FLANNEL_SUBNET="10.244.1.1/24"'],
    ["single quotes and a comment behind", "FLANNEL_SUBNET='10.244.1.1/24' # mine"],
    ["blanks around the sign", "  FLANNEL_SUBNET = 10.244.1.1/24  "],
    ["a comment without quotes", "FLANNEL_SUBNET=10.244.1.1/24 # mine"],
    ["carriage returns", "FLANNEL_MTU=1450\r\nFLANNEL_SUBNET=10.244.1.1/24\r\n"],
    ["comments and junk around it", "# hi\n\nnot a line\nFLANNEL_SUBNET=10.244.1.1/24\n=\n"],
    ["a later line", "FLANNEL_SUBNET=10.9.9.1/24\nFLANNEL_SUBNET=10.244.1.1/24"],
  ])("takes %s", (_, text) => {
    expect(parseSubnetFile(text)).toMatchObject({
      networks: {},
      subnets: { ipv4: "10.244.1.0/24" },
      problems: [],
    });
  });

  test.each([
    [
      "two subnets and a bad one (as upstream's tests have it)",
      "FLANNEL_SUBNET=10.244.1.0/24,not-a-cidr,10.244.2.0/24",
      {},
      [
        'FLANNEL_SUBNET: "not-a-cidr" is not an IPv4 subnet',
        "FLANNEL_SUBNET holds 2 subnets, exactly one was expected",
      ],
    ],
    [
      "one subnet and a bad one",
      "FLANNEL_SUBNET=10.244.1.1/24,not-a-cidr",
      { ipv4: "10.244.1.0/24" },
      ['FLANNEL_SUBNET: "not-a-cidr" is not an IPv4 subnet'],
    ],
    [
      "nothing but a bad one",
      "FLANNEL_SUBNET=not-a-cidr",
      {},
      ['FLANNEL_SUBNET: "not-a-cidr" is not an IPv4 subnet'],
    ],
    [
      "several IPv6 ones",
      "FLANNEL_IPV6_SUBNET=fd00::/64,not-a-cidr,fd01::/64",
      {},
      [
        'FLANNEL_IPV6_SUBNET: "not-a-cidr" is not an IPv6 subnet',
        "FLANNEL_IPV6_SUBNET holds 2 subnets, exactly one was expected",
      ],
    ],
    [
      "a subnet of the other family",
      "FLANNEL_SUBNET=fd00::/64\nFLANNEL_IPV6_SUBNET=10.244.1.0/24",
      {},
      [
        'FLANNEL_SUBNET: "fd00::/64" is not an IPv4 subnet',
        'FLANNEL_IPV6_SUBNET: "10.244.1.0/24" is not an IPv6 subnet',
      ],
    ],
    ["an empty value", "FLANNEL_SUBNET=\nFLANNEL_IPV6_SUBNET=", {}, []],
    ["only a comment as value", "FLANNEL_SUBNET= # none", {}, []],
  ])("tells of %s", (_, text, subnets, problems) => {
    expect(parseSubnetFile(text)).toEqual({ networks: {}, subnets, problems });
  });

  test("nothing in it makes the reader throw", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "FLANNEL_SUBNET",
        "FLANNEL_NETWORK",
        "=",
        '"',
        "'",
        "\n",
        "\r\n",
        ",",
        "#",
        " ",
        "export ",
        "/24",
      ),
      fc.constantFrom("10.244.1.1", "fd00::1", "99.9.9", "/33", "\0", "\u2028"),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const { subnets, networks } = parseSubnetFile(pieces.join(""));
        for (const text of [subnets.ipv4, networks.ipv4])
          if (text !== undefined) expect(text).toMatch(/^[\d.]+\/\d+$/);
      }),
      { numRuns: 500 },
    );
  });

  test("a megabyte of blanks is read in no time", () => {
    const before = performance.now();
    parseSubnetFile(`FLANNEL_SUBNET=${" ".repeat(1 << 20)}x\nFLANNEL_MTU=${" #".repeat(1 << 19)}`);
    expect(performance.now() - before).toBeLessThan(2_000);
  });

  test("a missing file is no problem, an unreadable one is", () => {
    using folder = new TemporaryFolder();
    expect(readSubnetFile(folder.file("none"))).toEqual({ networks: {}, subnets: {}, problems: [] });
    const { problems } = readSubnetFile(folder.path);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("cannot read it");
  });
});

describe("writing", () => {
  test("equal bytes leave inode and time of change as they are", () => {
    using folder = new TemporaryFolder();
    const path = folder.file("subnet.env");
    expect(writeSubnetFile(path, v4)).toBe(true);
    const { ino, mtimeMs } = statSync(path);
    expect(writeSubnetFile(path, v4)).toBe(false);
    expect(statSync(path)).toMatchObject({ ino, mtimeMs });
    expect(writeSubnetFile(path, { ...v4, mtu: 1400 })).toBe(true);
    expect(readFileSync(path, "utf8")).toContain("FLANNEL_MTU=1400\n");
  });

  test("a path that cannot be written is named, with what to do", () => {
    using folder = new TemporaryFolder();
    writeFileSync(folder.file("file"), "");
    const path = folder.file("file", "subnet.env");
    const fault = {
      code: "SUBNET_FILE",
      message: expect.stringContaining(path),
      hint: expect.stringContaining("folder"),
    };
    expect(() => writeSubnetFile(path, v4)).toThrow(expect.objectContaining(fault));
    expect(() => assertSubnetFilePath(path)).toThrow(expect.objectContaining(fault));
  });

  test.each(["", "/run/flannel/"])("%p is no file", (path) => {
    expect(() => assertSubnetFilePath(path)).toThrow(expect.objectContaining({ code: "SUBNET_FILE" }));
  });

  test("a folder is no file, a good path is left as it was", () => {
    using folder = new TemporaryFolder();
    mkdirSync(folder.file("subnet.env"));
    expect(() => assertSubnetFilePath(folder.file("subnet.env"))).toThrow(
      expect.objectContaining({ code: "SUBNET_FILE" }),
    );
    assertSubnetFilePath(folder.file("run", "subnet.env"));
    expect(() => statSync(folder.file("run", "subnet.env"))).toThrow("ENOENT");
  });
});
