import { expect, test } from "bun:test";
import { describeError, Fault, toFault } from "../../../core/observe/fault.ts";

test("describes anything thrown in one non-empty text without a stack", () => {
  expect(describeError(new Error("no route"))).toBe("no route");
  expect(describeError(new TypeError(""))).toBe("TypeError");
  expect(describeError("plain")).toBe("plain");
  expect(describeError(undefined)).toBe("undefined");
  expect(describeError(null)).toBe("null");
  expect(describeError({ toString: () => "odd" })).toBe("odd");
});

test("a fault passes through unchanged, anything else becomes one with its cause", () => {
  const fault = new Fault("A", "message", { hint: "do this" });
  expect(toFault(fault, "B", "prefix: ")).toBe(fault);
  const cause = new Error("EACCES");
  expect(toFault(cause, "B", "cannot write /run/x: ", "look")).toMatchObject({
    code: "B",
    message: "cannot write /run/x: EACCES",
    hint: "look",
    cause,
  });
});

test("defaults are empty, so callers need not look for undefined", () => {
  const { name, hint, others, cause } = new Fault("A", "message");
  expect({ name, hint, others, cause }).toEqual({ name: "Fault", hint: "", others: [], cause: undefined });
});
