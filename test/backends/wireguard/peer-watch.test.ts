import { expect, test } from "bun:test";
import { watchPeers } from "../../../backends/wireguard/peer-watch.ts";
import { until } from "../../lab/until.ts";

/** A watch with a short pause; `answer` is what a look finds. */
function watch(answer: () => Promise<boolean>) {
  const daemon = new AbortController();
  const seen = { looks: 0, wakes: 0 };
  const end = watchPeers(
    { signal: daemon.signal, wake: () => seen.wakes++ },
    () => {
      seen.looks++;
      return answer();
    },
    1,
  );
  return { seen, end, daemon };
}

/** Whether nobody looks any more: a watch of another session lives on and looks twenty times. */
async function isOver(seen: { readonly looks: number }): Promise<boolean> {
  const before = seen.looks;
  const other = watch(async () => false);
  await until(() => other.seen.looks >= 20, { message: "the other looks", interval: 1 });
  other.end();
  return seen.looks === before;
}

test("what differs, and a look that fails, ask for a sync", async () => {
  for (const answer of [async () => true, () => Promise.reject(new Error("gone"))]) {
    const { seen, end } = watch(answer);
    await until(() => seen.wakes > 1, { message: "a sync is asked for", interval: 1 });
    end();
  }
});

test("ends with its session, and with the daemon", async () => {
  for (const by of ["session", "daemon"] as const) {
    const { seen, end, daemon } = watch(async () => false);
    await until(() => seen.looks > 1, { message: "it looks", interval: 1 });
    if (by === "session") end();
    else daemon.abort();
    expect(await isOver(seen)).toBe(true);
  }
});

test("a look under way at the end asks for nothing", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { seen, end } = watch(() => promise);
  await until(() => seen.looks === 1, { message: "it looks", interval: 1 });
  end();
  resolve(true);
  await promise;
  expect(await isOver(seen)).toBe(true);
  expect(seen.wakes).toBe(0);
});
