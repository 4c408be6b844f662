import { canonicalAddress } from "../net/prefix.ts";
import { jsonAnswer, type Routes, textAnswer } from "../observe/answer.ts";
import type { Log } from "../observe/log.ts";
import { METRICS_TYPE, renderMetrics } from "../observe/metrics.ts";
import { explainAddress } from "./explain.ts";
import { AGENT_METRICS } from "./metrics.ts";
import type { Observation } from "./observation.ts";
import { composeStatus } from "./status.ts";
import { supervise } from "./supervise.ts";

/**
 * Opens what the daemon can be asked through, each on its own loop: the status socket, and the health server when
 * `--healthz-port` is above 0. Trouble with them is a finding. Disposing ends them.
 */
export function openEndpoints(observation: Observation, log: Log): AsyncDisposable {
  const { settings, health, loops } = observation;
  const over = new AbortController();
  const { signal } = over;
  const running: Promise<void>[] = [];
  const run = (name: string, loop: () => Promise<void>) => {
    running.push(supervise(name, loop, { health, loops, signal }));
  };
  run("status socket", async () => {
    const { serveStatus, statusSocketOf } = await import("../observe/status-socket.ts");
    const path = statusSocketOf(settings.subnetFile);
    await serveStatus({ path, routes: statusRoutes(observation), health }, signal);
  });
  const { healthzIp: address, healthzPort: port } = settings;
  if (port > 0) {
    run("health server", async () => {
      const { serveHealth } = await import("../observe/http.ts");
      await serveHealth({ address, port, routes: healthRoutes(observation), health, log }, signal);
    });
  }
  return {
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await Promise.all(running);
    },
  };
}

/** What everybody may ask: whether the process lives, turns and serves, and its figures. */
export function healthRoutes(observation: Observation): Routes {
  return {
    "/healthz": () => textAnswer("flanneld is running"),
    "/livez": () => {
      const overdue = observation.loops.overdue();
      if (overdue.length === 0) return textAnswer("flanneld is alive");
      return jsonAnswer({ alive: false, overdue }, 503);
    },
    "/readyz": (search) => {
      const reasons = observation.readiness();
      const ready = reasons.length === 0;
      const status = ready ? 200 : 503;
      if (!search.has("verbose")) {
        if (ready) return textAnswer("flanneld is ready");
        if (observation.phase === "starting") return textAnswer("flanneld is not ready yet", status);
      }
      return jsonAnswer({ ready, reasons }, status);
    },
    "/metrics": () => ({
      status: 200,
      type: METRICS_TYPE,
      body: renderMetrics(AGENT_METRICS, observation),
    }),
  };
}

/** What root may ask over the socket, as JSON, and what `flanneld probe` tells. */
export function statusRoutes(observation: Observation): Routes {
  return {
    "/status": () => jsonAnswer(composeStatus(observation)),
    "/journal": () => jsonAnswer({ entries: observation.journal.list() }),
    "/explain": async (search) => {
      const address = canonicalAddress(search.get("address") ?? "");
      if (address === undefined) return textAnswer("address: not an IP address\n", 400);
      return jsonAnswer(await explainAddress(observation, address));
    },
    "/probed": (search) => {
      if (!observation.probes.note(search)) return textAnswer("not the outcome of a probe\n", 400);
      return jsonAnswer({ noted: true });
    },
  };
}
