import { readCpuSeconds } from "../process-usage.ts";
import { inTurns, type Scenario } from "../scenario.ts";
import { Testbed } from "../testbed.ts";

/** From the start of the process to READY=1 on a host and in a network that are both empty. */
export const start: Scenario = {
  name: "start",
  title: "start → READY, no peers",
  figures: () => [
    { id: "ready", label: "start → READY", unit: "s", atMost: 0.3 },
    { id: "cpu", label: "CPU until READY", unit: "s" },
  ],
  async measure(session) {
    await using testbed = await Testbed.create(0);
    await inTurns(session, "start", async (subject) => {
      await using host = await testbed.addHost();
      const { daemon } = host.start(subject);
      session.record("ready", subject, (await daemon.ready) / 1000);
      session.record("cpu", subject, readCpuSeconds(daemon.pid));
    });
  },
};
