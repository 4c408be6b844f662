import { expect, test } from "bun:test";
import { DAEMON_SUBNETS } from "../lab/cluster.ts";
import { listFiles, readSource } from "./sources.ts";

/** Folders whose tests run daemons with the lab's network config. */
const FOLDERS = ["test/bench", "test/chaos", "test/e2e", "test/lab"];

/** `10.244.7.0`, and what is in that subnet; the network itself has an address too. */
const SUBNET = /\b10\.244\.(\d+)\.\d+/g;

test("no subnet that a test makes up can be one that a daemon of the lab takes", () => {
  const found = FOLDERS.flatMap(listFiles)
    .filter((path) => path.endsWith(".ts"))
    .flatMap((path) =>
      [...readSource(path).matchAll(SUBNET)]
        .filter(([, byte]) => Number(byte) >= DAEMON_SUBNETS.first && Number(byte) <= DAEMON_SUBNETS.last)
        .map(([address]) => `${path}: ${address}`),
    )
    // The definition of the range, in words; subnets that a daemon shall take come from daemonSubnet().
    .filter((place) => !place.startsWith("test/lab/cluster.ts: "));
  expect(found).toEqual([]);
});
