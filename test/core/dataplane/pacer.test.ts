import { expect, test } from "bun:test";
import { RepairPacer } from "../../../core/dataplane/pacer.ts";

function setUp() {
  const clock = { now: 1_000_000 };
  return { clock, pacer: new RepairPacer(() => clock.now) };
}

/** A process that undoes every repair at once, for a while. */
function fight({ clock, pacer }: ReturnType<typeof setUp>, ms: number): number {
  const end = clock.now + ms;
  let repairs = 0;
  for (;;) {
    const delay = pacer.delay();
    if (clock.now + delay > end) return repairs;
    clock.now += delay;
    pacer.repaired();
    repairs++;
  }
}

test("a disturbance is looked at after 200 ms", () => {
  const { pacer } = setUp();
  expect([pacer.delay(), pacer.exhausted, pacer.rested]).toEqual([200, false, true]);
});

test("twenty deletes in two seconds are all repaired at full speed", () => {
  const { clock, pacer } = setUp();
  for (let deletes = 0; deletes < 20; deletes++) {
    expect(pacer.delay()).toBe(200);
    pacer.repaired();
    clock.now += 100;
  }
  expect(pacer.exhausted).toBe(true);
});

test("an endless fight comes down to one repair per 3 s", () => {
  const state = setUp();
  fight(state, 60_000);
  expect(state.pacer.exhausted).toBe(true);
  expect(state.pacer.delay()).toBe(3_000);
  expect(fight(state, 300_000)).toBeWithin(95, 102);
});

test("a disturbance some time after a fight waits only for the rest of the 3 s", () => {
  const state = setUp();
  fight(state, 60_000);
  const { clock, pacer } = state;
  clock.now += 2_000;
  expect(pacer.delay()).toBe(1_000);
  clock.now += 900;
  expect(pacer.delay()).toBe(200);
});

test("the fight is over when half of the allowance is back", () => {
  const state = setUp();
  fight(state, 60_000);
  const { clock, pacer } = state;
  clock.now += 26_000;
  expect([pacer.exhausted, pacer.rested]).toEqual([false, false]);
  clock.now += 4_000;
  expect([pacer.exhausted, pacer.rested]).toEqual([false, true]);
  expect(pacer.delay()).toBe(200);
});

test("a year of quiet does not store up more than twenty repairs", () => {
  const { clock, pacer } = setUp();
  clock.now += 365 * 86_400_000;
  for (let repairs = 0; repairs < 20; repairs++) pacer.repaired();
  expect(pacer.exhausted).toBe(true);
});

test("looks that find nothing to do cost nothing", () => {
  const { clock, pacer } = setUp();
  for (let looks = 0; looks < 1_000; looks++) clock.now += pacer.delay();
  expect(pacer.delay()).toBe(200);
});
