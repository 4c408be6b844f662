/** The steps 2 to 5 of the README, word for word, on two hosts; `npm run build` of step 1 has made the executable. */
import { expect, test } from "bun:test";
import type { Host } from "../lab/host.ts";
import { until } from "../lab/until.ts";
import { DocumentedNode } from "./documented-node.ts";
import { readDocument } from "./markdown.ts";

/** The shell text of each numbered step of the section about hosts. */
function readSteps(): string[] {
  const section = readDocument("README.md")
    .split(/^## /m)
    .find((part) => part.startsWith("Run it on your hosts"));
  const steps = section?.split(/^\d\. /m).slice(1) ?? [];
  return steps.map(
    (step) => /^ *```sh\n([\s\S]*?)^ *```$/m.exec(step)?.[1]?.replace(/^ +/gm, "").trim() ?? "",
  );
}

test("a reader of the README gets two hosts whose containers reach each other", async () => {
  const [build = "", configure = "", start = "", docker = "", ping] = readSteps();
  expect(build).toContain("npm run build");
  expect(ping).toBe("");
  await using node = await DocumentedNode.create("pair");
  const hosts = node.cluster.hosts;
  const run = async (text: string, on?: Host) => expect(await node.run(text, on)).toMatchObject({ code: 0 });

  await run(configure);
  for (const host of hosts) await run(`${start} >"$DOC_NODE/${host.name}" 2>&1 </dev/null &`, host);
  for (const host of hosts) {
    await until(() => Bun.file(host.subnetFile).exists(), { message: "no subnet file", deadline: 60_000 });
    await run(docker, host);
  }
  const [a, b] = await node.cluster.addPods();
  await until(async () => (await a!.namespace.run(["ping", "-c1", "-W1", b!.ipv4])).exitCode === 0, {
    message: "no answer",
    deadline: 30_000,
  });
}, 120_000);
