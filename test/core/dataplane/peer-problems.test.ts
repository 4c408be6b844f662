import { expect, test } from "bun:test";
import { PeerProblems } from "../../../core/dataplane/peer-problems.ts";
import { Health } from "../../../core/observe/health.ts";
import { yieldToEventLoop } from "../../../core/retry/event-loop.ts";
import { RecordingLog } from "../observe/recording-log.ts";

function setUp() {
  const log = new RecordingLog();
  const health = new Health(log);
  return { log, health, problems: new PeerProblems(health) };
}

test("a thousand bad peers at once are one line that names three of them", async () => {
  const { log, problems } = setUp();
  for (let at = 0; at < 1000; at++) problems.note(`peer${at}`, ['uses backend "udp"', "has no MAC"]);
  await yieldToEventLoop();
  expect(log.messages()).toEqual([
    "peers that cannot be reached as configured: 1000: " +
      'peer0 uses backend "udp" and has no MAC; peer1 uses backend "udp" and has no MAC; ' +
      'peer2 uses backend "udp" and has no MAC and 997 more',
  ]);
});

test("saying the same again is no line; the last one healed ends it", async () => {
  const { log, health, problems } = setUp();
  for (let round = 0; round < 3; round++) {
    problems.note("a", ["is bad"]);
    problems.note("fine", []);
    await yieldToEventLoop();
  }
  expect(log.lines).toHaveLength(1);
  problems.note("a", []);
  await yieldToEventLoop();
  expect(health.list()).toEqual([]);
  expect(log.lines).toHaveLength(2);
});

test("a peer that goes takes its problem along", async () => {
  const { health, problems } = setUp();
  problems.note("a", ["is bad"]);
  problems.note("b", ["is worse"]);
  await yieldToEventLoop();
  problems.forget("a");
  await yieldToEventLoop();
  expect(health.list().map((finding) => finding.text)).toEqual(["1: b is worse"]);
  problems.forget("b");
  problems.forget("unknown");
  await yieldToEventLoop();
  expect(health.list()).toEqual([]);
});
