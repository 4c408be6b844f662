import { expect, test } from "bun:test";
import { supervise } from "../../../core/agent/supervise.ts";
import { Health } from "../../../core/observe/health.ts";
import { Loops } from "../../../core/observe/loops.ts";
import { sleep } from "../../../core/retry/backoff.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "../observe/recording-log.ts";

function setUp() {
  const controller = new AbortController();
  const health = new Health(new RecordingLog());
  const loops = new Loops();
  return { controller, supervision: { health, loops, signal: controller.signal, settled: 50 } };
}

test("a loop that throws is started again, counted, and its finding goes when it runs well", async () => {
  const { controller, supervision } = setUp();
  const { health, loops } = supervision;
  let runs = 0;
  const done = supervise(
    "peers",
    async () => {
      if (++runs === 1) throw new Error("broken pipe");
      await sleep(60_000, controller.signal);
    },
    supervision,
  );
  await until(() => health.has("LOOP_RESTARTED"), { message: "no finding" });
  expect(health.active()[0]).toMatchObject({ subject: "peers", finding: { text: "broken pipe" } });
  await until(() => runs === 2 && !health.has("LOOP_RESTARTED"), { message: "not started again" });
  expect(loops.list()).toEqual([{ name: "peers", restarts: 1 }]);
  controller.abort();
  await done;
});

test("a loop that ends by itself is started again", async () => {
  const { controller, supervision } = setUp();
  let runs = 0;
  const done = supervise("host", async () => void runs++, supervision);
  await until(() => runs >= 2, { message: "not started again" });
  controller.abort();
  await done;
  expect(supervision.health.list()[0]?.text).toBe("it ended by itself");
});

test("a loop that has ended with the daemon is not overdue", async () => {
  const { controller, supervision } = setUp();
  const clock = { now: 0 };
  const loops = new Loops(() => clock.now);
  const done = supervise(
    "lease",
    async (pulse) => {
      pulse(1_000);
      await sleep(60_000, controller.signal);
    },
    { ...supervision, loops },
  );
  clock.now = 1e6;
  expect(loops.overdue()).toMatchObject([{ name: "lease" }]);
  controller.abort();
  await done;
  expect(loops.overdue()).toEqual([]);
});
