import { expect, test } from "bun:test";
import { yieldToEventLoop } from "../../../core/retry/event-loop.ts";
import { Turns } from "../../../core/retry/turns.ts";

test("work is done one after the other, in the order it came", async () => {
  const turns = new Turns();
  const events: string[] = [];
  const work = (name: string, ticks: number) =>
    turns.take(async () => {
      events.push(`${name} begins`);
      for (let tick = 0; tick < ticks; tick++) await yieldToEventLoop();
      events.push(`${name} ends`);
      return name;
    });
  expect(await Promise.all([work("slow", 5), work("quick", 0), work("last", 1)])).toEqual([
    "slow",
    "quick",
    "last",
  ]);
  expect(events).toEqual([
    "slow begins",
    "slow ends",
    "quick begins",
    "quick ends",
    "last begins",
    "last ends",
  ]);
});

test("a failure is the caller's, and the next one has its turn", async () => {
  const turns = new Turns();
  const failed = turns.take(async () => {
    throw new Error("refused");
  });
  const next = turns.take(async () => "next");
  expect(failed).rejects.toThrow("refused");
  expect(await next).toBe("next");
});

test("a failure nobody waits for is still reported once, not twice", async () => {
  const turns = new Turns();
  const outcome = turns.take(() => Promise.reject(new Error("refused"))).catch((error) => error.message);
  await turns.take(async () => {});
  expect(await outcome).toBe("refused");
});

test("yielding lets a timer that is due run first", async () => {
  let ran = false;
  setTimeout(() => {
    ran = true;
  }, 0);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await yieldToEventLoop();
  expect(ran).toBe(true);
});
