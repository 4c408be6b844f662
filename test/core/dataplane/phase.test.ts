import { expect, test } from "bun:test";
import { Phase } from "../../../core/dataplane/phase.ts";

test("a call gives what it gives, and its own error", async () => {
  const phase = new Phase("sync", 1_000);
  expect(await phase.call(async () => 7)).toBe(7);
  await expect(phase.call(() => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
  await expect(
    phase.call(() => {
      throw new Error("at once");
    }),
  ).rejects.toThrow("at once");
  expect(await phase.call(async () => 8)).toBe(8);
});

test("a call that takes too long is given up by name, and the next one waits for it instead of running beside it", async () => {
  const phase = new Phase("sync", 100);
  const hung = Promise.withResolvers<void>();
  let calls = 0;
  const slow = () => {
    calls += 1;
    return hung.promise;
  };
  await expect(phase.call(slow)).rejects.toMatchObject({
    code: "BACKEND_TIMEOUT",
    message: "sync of the backend: it did not finish within 100 ms",
  });
  await expect(phase.call(slow)).rejects.toMatchObject({
    message: expect.stringContaining("an earlier call"),
  });
  expect(calls).toBe(1);
  const next = phase.call(async () => "done");
  hung.resolve();
  expect(await next).toBe("done");
});

test("a call that fails after it was given up is no unhandled rejection", async () => {
  const phase = new Phase("stop", 20);
  const hung = Promise.withResolvers<void>();
  await expect(phase.call(() => hung.promise)).rejects.toMatchObject({ code: "BACKEND_TIMEOUT" });
  hung.reject(new Error("too late"));
  expect(await phase.call(async () => "next")).toBe("next");
});
