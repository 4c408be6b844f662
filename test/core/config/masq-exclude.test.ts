import { describe, expect, test } from "bun:test";
import { readNetworkConfig } from "../../../core/config/network.ts";
import { Fault } from "../../../core/observe/fault.ts";

const DUAL = '"Network":"10.3.0.0/16","EnableIPv6":true,"IPv6Network":"fd00:3::/48"';

function read(members: string) {
  return readNetworkConfig(`{${members}}`, "net.json");
}

function messages(members: string): string[] {
  try {
    read(members);
  } catch (error) {
    if (error instanceof Fault) return [error, ...error.others].map(({ message }) => message.slice(9));
    throw error;
  }
  throw new Error("accepted");
}

describe("MasqExclude", () => {
  test.each([
    ["", { ipv4: [], ipv6: [] }],
    [',"MasqExclude":null', { ipv4: [], ipv6: [] }],
    [',"MasqExclude":[]', { ipv4: [], ipv6: [] }],
    [
      ',"masqexclude":["192.168.0.0/16","fd00:99::/32","192.0.2.7/32","0.0.0.0/0","192.168.0.0/16","::/0"]',
      { ipv4: ["192.168.0.0/16", "192.0.2.7/32", "0.0.0.0/0"], ipv6: ["fd00:99::/32", "::/0"] },
    ],
  ])("%s is read in order, each network once", (members, wanted) => {
    const { config, warnings } = read(DUAL + members);
    expect(config.masqExclude).toEqual(wanted);
    expect(warnings).toEqual([]);
  });

  test("host bits are masked off, a family that is off is left out, with warnings", () => {
    const { config, warnings } = read(
      '"Network":"10.3.0.0/16",\n"MasqExclude":["192.168.5.1/16","fd00::/8"]',
    );
    expect(config.masqExclude).toEqual({ ipv4: ["192.168.0.0/16"], ipv6: [] });
    expect(warnings.map(({ code, text }) => [code, text])).toEqual([
      [
        "CONFIG_HOST_BITS",
        'net.json:2:16: key "MasqExclude[0]": "192.168.5.1/16" has host bits and is read as 192.168.0.0/16',
      ],
      [
        "CONFIG_IGNORED_KEY",
        'net.json:2:33: key "MasqExclude[1]": "fd00::/8" is ignored: IPv6 is not enabled',
      ],
    ]);
  });

  test.each([
    ['"192.168.0.0/16"', '1:86: key "MasqExclude": "192.168.0.0/16" is no list of networks'],
    ["{}", '1:86: key "MasqExclude": an object is no list of networks'],
    ["[7]", '1:87: key "MasqExclude[0]": 7 must be text: a network in CIDR form'],
    ['["10.0.0.0/8", null]', '1:101: key "MasqExclude[1]": null must be text: a network in CIDR form'],
    [
      '["192.0.2.7"]',
      '1:87: key "MasqExclude[0]": "192.0.2.7" lacks the prefix length; nearest legal value is 192.0.2.7/32',
    ],
    [
      '["fd00::7"]',
      '1:87: key "MasqExclude[0]": "fd00::7" lacks the prefix length; nearest legal value is fd00::7/128',
    ],
    [
      '[" 10.0.0.0/8"]',
      '1:87: key "MasqExclude[0]": " 10.0.0.0/8" is no network in CIDR form; nearest legal value is 10.0.0.0/8',
    ],
    ['["10.0.0.0/33"]', '1:87: key "MasqExclude[0]": "10.0.0.0/33" is no network in CIDR form'],
    [
      '["::ffff:10.0.0.0/104"]',
      '1:87: key "MasqExclude[0]": "::ffff:10.0.0.0/104" is an IPv4 network in IPv6 form; write it in IPv4 form',
    ],
  ])("refuses %s", (value, message) => {
    expect(messages(`${DUAL},"MasqExclude":${value}`)).toEqual([message]);
  });

  test("tells all issues at once, along with those of other keys", () => {
    expect(messages('"SubnetLen":31,"Network":"10.3.0.0/16","MasqExclude":["a","b"]')).toHaveLength(3);
  });

  test("the length of the list is bounded", () => {
    const list = Array.from({ length: 257 }, (_, at) => `"10.${at >> 8}.${at & 255}.0/24"`);
    expect(messages(`${DUAL},"MasqExclude":[${list.join(",")}]`)).toEqual([
      '1:86: key "MasqExclude" has 257 networks, at most 256 are allowed',
    ]);
    expect(read(`${DUAL},"MasqExclude":[${list.slice(1).join(",")}]`).config.masqExclude.ipv4).toHaveLength(
      256,
    );
  });
});
