import { describe, expect, test } from "bun:test";
import { read, refusal } from "./reading.ts";

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
