import { expect, test } from "bun:test";
import { watchdogPeriod } from "../../../core/host/watchdog.ts";

test.each([
  [{ WATCHDOG_USEC: "60000000" }, 30_000],
  [{ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "42" }, 30_000],
  [{ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "43" }, undefined],
  [{}, undefined],
  [{ WATCHDOG_USEC: "" }, undefined],
  [{ WATCHDOG_USEC: "0" }, undefined],
  [{ WATCHDOG_USEC: "soon" }, undefined],
])("watchdog period of %j", (environment, period) => {
  expect(watchdogPeriod(environment, 42)).toBe(period);
});
