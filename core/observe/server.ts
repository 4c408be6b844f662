import { sleep } from "../retry/backoff.ts";
import { type Answer, type Routes, textAnswer } from "./answer.ts";
import { describeError } from "./fault.ts";

/** Where a server listens. */
export type Place = { readonly hostname: string; readonly port: number } | { readonly unix: string };

/** Time requests under way get when a server stops, ms. */
const STOP_MS = 300;
/** A client that sends nothing for so long is hung up on, seconds. */
const IDLE_SECONDS = 10;
/** Nobody has anything to tell us: longer requests are refused, bytes. */
const LONGEST_BODY = 1_024;

/** A server that listens. */
export interface Listening {
  /** The TCP port, undefined on a unix socket. */
  readonly port: number | undefined;
  /** Ends it: requests under way get a moment. */
  stop(): Promise<void>;
}

/**
 * Serves the routes; any other path is 404. A route that throws is a 500 with its message. Throws the system's error
 * when the place cannot be listened on.
 */
export function listen(place: Place, routes: Routes): Listening {
  const options = {
    development: false,
    maxRequestBodySize: LONGEST_BODY,
    fetch: async (request: Request) => toResponse(await answer(routes, new URL(request.url))),
    error: () => toResponse(textAnswer("the request cannot be answered\n", 500)),
  } as const;
  const server =
    "unix" in place
      ? Bun.serve({ ...options, unix: place.unix })
      : // Outside of development Bun shares a port (SO_REUSEPORT) with whoever does so, too: another flanneld.
        Bun.serve({ ...options, ...place, idleTimeout: IDLE_SECONDS, reusePort: false });
  return {
    port: server.port,
    stop: async () => {
      await Promise.race([server.stop(), sleep(STOP_MS)]);
      await server.stop(true);
    },
  };
}

async function answer(routes: Routes, { pathname, searchParams }: URL): Promise<Answer> {
  const route = Object.hasOwn(routes, pathname) ? routes[pathname] : undefined;
  if (!route) return textAnswer("404 page not found\n", 404);
  try {
    return await route(searchParams);
  } catch (error) {
    return textAnswer(`${describeError(error)}\n`, 500);
  }
}

function toResponse({ status, type, body }: Answer): Response {
  return new Response(body, { status, headers: { "Content-Type": type } });
}
