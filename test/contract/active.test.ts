import { describe, test } from "bun:test";
import { ACTIVE_CONTRACT, activeSettings } from "./active-contract.ts";

describe.each(activeSettings("here"))("%s", (_, setting) => {
  test.each(ACTIVE_CONTRACT)("%s", (_words, keeps) => keeps(setting));
});
