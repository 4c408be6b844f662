import { describe, expect, test } from "bun:test";
import { messages, read, refusal, SOURCE } from "./reading.ts";

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
