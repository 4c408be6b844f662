import { describe, expect, test } from "bun:test";
import ipsec from "../../../backends/ipsec/index.ts";
import { OPTIONS, PSK } from "./ends.ts";

describe("options", () => {
  const validate = async (raw: unknown) => ipsec.options["~standard"].validate(raw);

  test("have upstream's defaults", async () => {
    expect(await validate({ PSK })).toMatchObject({ value: OPTIONS });
  });

  test("a PSK that is none is refused without being shown", async () => {
    for (const bad of [undefined, "", PSK.slice(1), `secret-${"x".repeat(80)}`, 7, "s".repeat(5_000)]) {
      const { issues } = await validate(bad === undefined ? {} : { PSK: bad });
      expect(issues?.length).toBeGreaterThan(0);
      for (const { message } of issues ?? []) {
        expect(message).toContain("PSK");
        expect(message).not.toContain("secret");
      }
    }
  });

  test("a proposal that could not be one is refused", async () => {
    for (const ESPProposal of ["", "aes 128", "aes;rm", "-aes"]) {
      expect((await validate({ PSK, ESPProposal })).issues?.[0]?.message).toContain("ESPProposal");
    }
    expect((await validate({ PSK, ESPProposal: "aes256-sha256-modp2048" })).issues).toBeUndefined();
  });
});
