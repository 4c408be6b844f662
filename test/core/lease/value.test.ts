import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { LeaseAttrs } from "../../../core/lease/lease.ts";
import { decodeValue, encodeValue } from "../../../core/lease/value.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

const golden: [string, LeaseAttrs][] = [
  ['{"PublicIP":"1.2.3.4","PublicIPv6":null}', { backendType: "", publicIP: "1.2.3.4" }],
  [
    '{"PublicIP":"192.0.2.2","PublicIPv6":null,"BackendType":"host-gw"}',
    { backendType: "host-gw", publicIP: "192.0.2.2" },
  ],
  [
    '{"PublicIP":"192.0.2.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"e2:2b:ae:e9:c3:ea"}}',
    { backendType: "vxlan", publicIP: "192.0.2.1", backendData: { VNI: 1, VtepMAC: "e2:2b:ae:e9:c3:ea" } },
  ],
  [
    '{"PublicIP":"192.0.2.1","PublicIPv6":"fd00:db8::1","BackendType":"vxlan","BackendData":{"VNI":5,"VtepMAC":"6e:f9:5f:0e:8f:79"},"BackendV6Data":{"VNI":5,"VtepMAC":"ce:56:24:8b:56:10"}}',
    {
      backendType: "vxlan",
      publicIP: "192.0.2.1",
      publicIPv6: "fd00:db8::1",
      backendData: { VNI: 5, VtepMAC: "6e:f9:5f:0e:8f:79" },
      backendV6Data: { VNI: 5, VtepMAC: "ce:56:24:8b:56:10" },
    },
  ],
  [
    '{"PublicIP":"1.2.3.4","PublicIPv6":null,"BackendType":"wireguard","BackendData":{"PublicKey":"q+/8=","Port":51820}}',
    { backendType: "wireguard", publicIP: "1.2.3.4", backendData: { PublicKey: "q+/8=", Port: 51820 } },
  ],
  [
    '{"PublicIP":"1.2.3.4","PublicIPv6":null,"NodeID":"3f0c-9ab1","BootID":"77aa"}',
    { backendType: "", publicIP: "1.2.3.4", nodeId: "3f0c-9ab1", bootId: "77aa" },
  ],
  [
    '{"PublicIP":"0.0.0.0","PublicIPv6":"fd00:db8::1","BackendType":"vxlan","BackendV6Data":{"VNI":1},"NodeID":"a-b"}',
    { backendType: "vxlan", publicIPv6: "fd00:db8::1", backendV6Data: { VNI: 1 }, nodeId: "a-b" },
  ],
  // Go escapes these for the sake of HTML, in raw JSON too.
  [
    '{"PublicIP":"1.2.3.4","PublicIPv6":null,"BackendType":"extension","BackendData":"a \\u003cb\\u003e \\u0026 \\u2028\\u2029"}',
    { backendType: "extension", publicIP: "1.2.3.4", backendData: "a <b> & \u2028\u2029" },
  ],
];

test.each(golden)("bytes %s", (text, attrs) => {
  expect(encodeValue(attrs)).toBe(text);
  expect(decodeValue(text)).toEqual(attrs);
});

test.each<[string, string, LeaseAttrs]>([
  ["0.13", '{"PublicIP":"1.2.3.4"}', { backendType: "", publicIP: "1.2.3.4" }],
  [
    "0.13 vxlan",
    '{"PublicIP":"1.2.3.4","BackendType":"vxlan","BackendData":{"VtepMAC":"82:4b:b6:2f:54:4e"}}',
    { backendType: "vxlan", publicIP: "1.2.3.4", backendData: { VtepMAC: "82:4b:b6:2f:54:4e" } },
  ],
  [
    "any case",
    '{"publicip":"1.2.3.4","PUBLICIPV6":"FD00::1"}',
    { backendType: "", publicIP: "1.2.3.4", publicIPv6: "fd00::1" },
  ],
  [
    "the last of two spellings",
    '{"PublicIP":"1.1.1.1","publicIP":"2.2.2.2"}',
    { backendType: "", publicIP: "2.2.2.2" },
  ],
  [
    "unknown fields",
    ' {"PublicIP":"1.2.3.4","Extra":[1,{}],"":0}\n',
    { backendType: "", publicIP: "1.2.3.4" },
  ],
  [
    "empty backend fields",
    '{"PublicIP":"1.2.3.4","BackendType":null,"BackendData":null,"NodeID":""}',
    { backendType: "", publicIP: "1.2.3.4" },
  ],
  ["a reservation by id alone", '{"NodeID":"a-b"}', { backendType: "", nodeId: "a-b" }],
  [
    "no prototype is touched",
    '{"PublicIP":"1.2.3.4","__proto__":{"nodeId":"x"}}',
    { backendType: "", publicIP: "1.2.3.4" },
  ],
])("reads %s", (_, text, attrs) => {
  const read = decodeValue(text);
  expect(read).toStrictEqual(attrs);
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
});

test.each([
  ["", "empty"],
  ["  ", "empty"],
  ["not json", "not JSON"],
  ['{"PublicIP":"1.2.3.4"}}', "not JSON"],
  ["null", "not a JSON object"],
  ["[]", "not a JSON object"],
  ['"x"', "not a JSON object"],
  ['{"PublicIP":null}', "PublicIP null"],
  ['{"PublicIP":"fd00::1"}', 'PublicIP "fd00::1"'],
  ['{"PublicIP":"1.2.3.04"}', 'PublicIP "1.2.3.04"'],
  ['{"PublicIP":16909060}', "PublicIP 16909060"],
  ['{"PublicIP":{}}', "PublicIP {…}"],
  ['{"PublicIP":"1.2.3.4","PublicIPv6":"1.2.3.4"}', 'PublicIPv6 "1.2.3.4"'],
  ['{"PublicIP":"1.2.3.4","BackendType":7}', "BackendType 7"],
  ['{"PublicIP":"1.2.3.4","NodeID":["x"]}', "NodeID […]"],
  ["{}", "names no owner"],
  ['{"PublicIP":"0.0.0.0","PublicIPv6":"::"}', "names no owner"],
  [`{"PublicIP":"${"9".repeat(1000)}"}`, "PublicIP"],
])("refuses %s", (text, reason) => {
  const read = decodeValue(text);
  if (!("error" in read)) throw new Error("accepted");
  expect(read.error).toContain(reason);
  expect(read.error.length).toBeLessThan(120);
});

const attrs: fc.Arbitrary<LeaseAttrs> = fc
  .record(
    {
      backendType: fc.string(),
      publicIP: fc.ipV4().filter((address) => address !== "0.0.0.0"),
      nodeId: fc.string({ minLength: 1 }),
      bootId: fc.string({ minLength: 1 }),
      // JSON text of -0 is 0.
      backendData: fc.jsonValue().map((data) => JSON.parse(JSON.stringify(data)) as unknown),
      backendV6Data: fc.jsonValue().map((data) => JSON.parse(JSON.stringify(data)) as unknown),
    },
    { requiredKeys: ["backendType", "publicIP"] },
  )
  .map(({ backendData, backendV6Data, ...rest }) => ({
    ...rest,
    ...(backendData === undefined || backendData === null ? {} : { backendData }),
    ...(backendV6Data === undefined || backendV6Data === null ? {} : { backendV6Data }),
  }));

test("property: what is written is read back, and writes the same bytes again", () => {
  fc.assert(
    fc.property(attrs, (written) => {
      const text = encodeValue(written);
      const read = decodeValue(text);
      expect(read).toEqual(written);
      expect(encodeValue(read as LeaseAttrs)).toBe(text);
    }),
  );
});

test("property: no text makes it throw, and what it accepts is stable", () => {
  const nearlyJson = fc
    .tuple(
      fc.constantFrom(...golden.map(([text]) => text)),
      fc.nat(200),
      fc.nat(3),
      fc.string({ maxLength: 3 }),
    )
    .map(([text, at, cut, junk]) => text.slice(0, at) + junk + text.slice(at + cut));
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.json(), nearlyJson), (text) => {
      const read = decodeValue(text);
      if ("error" in read) expect(read.error).not.toBe("");
      else expect(decodeValue(encodeValue(read))).toEqual(read);
    }),
    { numRuns: 1000 },
  );
  expect(decodeValue("[".repeat(2_000_000))).toHaveProperty("error");
});
